"""Loops in which a person reads and types: following a run, a chat, an inbox in an organisation."""
