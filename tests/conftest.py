"""For all tests: asserts of the conformance suites explain themselves."""

import pytest

pytest.register_assert_rewrite("greenroom.testing.conformance")
