"""The built-in agents of organisations, as files in every language."""
