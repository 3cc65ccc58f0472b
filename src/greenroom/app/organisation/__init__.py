"""Organisations: people, managers and planning agents in one team that keeps running."""
