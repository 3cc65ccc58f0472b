"""The terminal's door: the `greenroom` command."""
