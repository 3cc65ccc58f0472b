"""What agents are told, section by section, in every language we speak."""
