"""The prompts of agents that plan: one file per skill, one per section, and what all of them are told of the house."""
