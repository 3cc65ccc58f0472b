"""Checks of a project: finding them, running them in worktrees, reading their output, and the verdict on a change."""
