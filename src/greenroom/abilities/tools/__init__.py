"""Tools: what touches the world. Each is an executor with a card; permission is decided before one runs, not in it."""
