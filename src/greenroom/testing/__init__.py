"""Public tools for testing teams: a scripted model, a harness, small honest tools, conformance suites."""
