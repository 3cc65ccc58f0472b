"""The prompts for the model that controls the browser, a folder per language."""
