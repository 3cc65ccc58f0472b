"""For all tests: asserts of the conformance suites explain themselves, and no walls are put up but where a test wants.

What is asked about commands, and how they end, is tested without walls. Those are tested in `adapters/sandbox`, in
`sandbox`, and where `GREENROOM_SANDBOX` is set to `auto`.
"""

import os

import pytest

pytest.register_assert_rewrite("greenroom.testing.conformance")
os.environ["GREENROOM_SANDBOX"] = "off"
pytest_plugins = ["tests.measuring"]
