"""The conformance suites are tests too: their asserts shall explain themselves."""

import pytest

pytest.register_assert_rewrite("greenroom.testing.conformance")
