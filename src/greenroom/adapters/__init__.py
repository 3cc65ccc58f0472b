"""The world outside: stores, models, sandboxes, git. Each adapter implements a port of the core."""
