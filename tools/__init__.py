"""Small programs for developers. Not shipped."""
