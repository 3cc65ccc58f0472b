"""The prompts of ArtifactFlow's agents, in every language."""
