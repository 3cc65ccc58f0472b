"""The hands of a team: which tools there are, who may use them, and what happens around every call."""
