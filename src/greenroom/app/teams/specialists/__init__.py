"""The built-in specialists of teams, as files in every language."""
