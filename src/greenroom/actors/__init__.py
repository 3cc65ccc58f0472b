"""The actors: agents that run steps, and the scheduler that advances tasks. They interact only through the state."""
