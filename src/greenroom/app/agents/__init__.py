"""Agent files: where they are found, what their keys mean, and how a new one is written."""
