"""For all tests: asserts of the conformance suites explain themselves, and no walls are put up but where a test wants.

What is asked about commands, and how they end, is tested without walls. Those are tested in `adapters/sandbox`, in
`sandbox`, and where `GREENROOM_SANDBOX` is set to `auto`.
"""

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("quick", max_examples=50)  # of a test that does not say how many it wants
settings.load_profile("quick")
pytest.register_assert_rewrite("greenroom.testing.conformance", "tests.conformance")
os.environ["GREENROOM_SANDBOX"] = "off"
# A job in the background ignores these two, and all that it starts inherits that: tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
pytest_plugins = ["tests.measuring"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep what is loaded out of garbage collection: it stays to the end, and looking through it takes long."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
