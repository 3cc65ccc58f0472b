"""What needs the model: a .py and its prompt .md side by side."""
