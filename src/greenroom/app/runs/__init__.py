"""Runs: from a prompt to a verified change of a person's files that can be undone."""
