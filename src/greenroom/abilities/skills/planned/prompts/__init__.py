"""The prompts of planning agents: one file per skill, one per section, and a common base."""
