"""The prompts of a skill that only a test has."""
