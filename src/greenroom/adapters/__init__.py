"""Adapters to the outside: stores, models, sandboxes, git. Each implements a port of the core."""
