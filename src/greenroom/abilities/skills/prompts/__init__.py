"""The prompts of conversing agents: one file per section, a folder per language."""
