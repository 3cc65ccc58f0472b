"""Commands as tools: `execute_script`, and what goes with those that run in the background."""
