"""MCP servers here: which there are and whose each is, what a person has seen of them, and their tools for a run."""
