"""Doing what was ordered: one invocation, a team that runs here, how it ends."""
