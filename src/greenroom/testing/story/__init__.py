"""The story that the demo tells: a small repository, a coder whose replies are scripted, and what has to be true."""
