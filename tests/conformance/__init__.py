"""Conformance suites of ports that only Greenroom itself implements."""
