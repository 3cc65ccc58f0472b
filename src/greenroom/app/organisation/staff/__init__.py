"""Agents that every organisation can have, as files, in every language."""
