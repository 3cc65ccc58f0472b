"""Crash tests: a scenario with everything in it, killed everywhere, and an independent checker."""
