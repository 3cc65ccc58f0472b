"""The prompts of runs, in every language."""
