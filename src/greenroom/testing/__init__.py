"""Public helpers for testing teams: a scripted model, a harness, small example tools, conformance suites."""
