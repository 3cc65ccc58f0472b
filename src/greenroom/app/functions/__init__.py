"""Functions as tools: what a model is told of one, how it is called, and what becomes of what it returns."""
