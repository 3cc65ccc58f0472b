"""The prompts of the protocols, a folder per language."""
