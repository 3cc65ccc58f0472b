"""Conformance suites: test classes that every adapter of a port inherits from. Only these modules import pytest."""
