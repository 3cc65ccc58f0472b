"""Symbols of source files, and the semantic conflicts between two changes that git merges cleanly."""
