"""Walls around commands: what the system has for it, put together, tried out and taken down again."""
