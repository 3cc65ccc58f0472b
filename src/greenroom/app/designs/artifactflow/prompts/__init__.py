"""What ArtifactFlow's agents are told, one file for each, in every language we speak."""
