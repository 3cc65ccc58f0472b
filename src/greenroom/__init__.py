"""Greenroom: a team of AI agents that you can trust with real work."""
