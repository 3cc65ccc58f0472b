"""Checks: which ones a project has, what their output says, what changed since. Nothing is run here, nor written."""
