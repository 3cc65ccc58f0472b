"""Output for people and programs: answers, progress, events and errors."""
