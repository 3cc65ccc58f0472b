"""Long results: the one rule of how much of a result is read at once, and the tool that reads the rest."""
