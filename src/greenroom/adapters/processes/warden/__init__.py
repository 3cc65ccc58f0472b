"""The warden: a small program of ours beside the house. It forks a guard for each command, so that its processes stay
findable, and everything ends when the house does. It uses the standard library only, and nothing of the house."""
