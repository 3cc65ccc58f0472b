"""Processes that work for a team: how they are started so that they can be found and ended again."""
