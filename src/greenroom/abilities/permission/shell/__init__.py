"""How a command line is taken apart: only what is certain, and a reason wherever it is not."""
