"""The organisation: people, managers and agents that plan, in one team that keeps running."""
