"""Implementations of the log: in memory for tests and `--ephemeral`, in SQLite otherwise."""
