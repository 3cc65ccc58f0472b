"""Run commands: a clean environment, no interactive questions, and no process that outlives them."""
