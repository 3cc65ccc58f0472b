"""The sandbox from outside: attempts to escape, work that must succeed, and what is left behind."""
