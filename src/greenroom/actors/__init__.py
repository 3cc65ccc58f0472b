"""Who does it: agents that run steps, and teamwork that moves tasks on. They meet only in the state."""
