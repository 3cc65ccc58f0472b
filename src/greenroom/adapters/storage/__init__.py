"""Where the log lies: in memory for tests and `--ephemeral`, in SQLite for real."""
