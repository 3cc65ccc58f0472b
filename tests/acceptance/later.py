"""Tests of behaviour that is still to come. Each is strictly expected to fail until its line here is deleted."""

EXPECTED_LATER: dict[str, str] = {}
