"""For all tests: rewrite asserts of the conformance suites, and use no sandbox unless a test asks for it.

The policy and the endings of commands are tested without a sandbox. The sandbox is tested in `adapters/sandbox`, in
`sandbox`, and where `GREENROOM_SANDBOX` is `auto`.
"""

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from greenroom.app.messages import current_language, set_language

settings.register_profile("quick", max_examples=50)  # for tests that do not set a number
settings.load_profile("quick")
pytest.register_assert_rewrite("greenroom.testing.conformance", "tests.conformance")
os.environ["GREENROOM_SANDBOX"] = "off"
# A background job ignores both signals, and its children inherit that: tests of Ctrl-C would wait forever.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
pytest_plugins = ["tests.measuring"]
set_language("en")  # errors are sentences, not codes


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exclude loaded modules from garbage collection: they stay until the end, and scanning them is slow."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """Reset the language, which a command in this process may have set."""
    yield
    if current_language() != "en":
        set_language("en")
