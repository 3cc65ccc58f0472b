"""Searches: one file for each of those who can be asked."""
