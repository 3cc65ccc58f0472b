"""For all tests: asserts of the conformance suites explain themselves, and no walls are put up but where a test wants.

What is asked about commands, and how they end, is tested without walls. Those are tested in `adapters/sandbox`, in
`sandbox`, and where `GREENROOM_SANDBOX` is set to `auto`.
"""

import os
from pathlib import Path

import pytest
from coverage.config import CoverageConfig

import greenroom

pytest.register_assert_rewrite("greenroom.testing.conformance")
os.environ["GREENROOM_SANDBOX"] = "off"
MEASURING = "COVERAGE_PROCESS_CONFIG"


def pytest_collection() -> None:
    """Processes that tests start are measured too, but look up nothing for it.

    Each would look for all files of the package, to name those of which it has run no line: a fifth of a second, when
    it is enough that the tests' own process does.
    """
    if MEASURING in os.environ:
        config = CoverageConfig.deserialize(os.environ[MEASURING])
        config.source_pkgs, config.run_include = [], [str(Path(greenroom.__file__).parent / "*")]
        os.environ[MEASURING] = config.serialize()
