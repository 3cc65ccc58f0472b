"""The terminal's cli: the `greenroom` command."""
