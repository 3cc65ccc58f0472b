"""The skills of planning agents. Each is a prompt and an interpretation of its answer; `executor.py` runs them all."""
