"""Crash tests: a scenario with everything in it, killed everywhere, and a checker that trusts nobody."""
