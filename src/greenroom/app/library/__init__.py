"""The public library: define agents and tools in Python, run them, and hold conversations with them."""
