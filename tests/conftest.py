"""For all tests: asserts of the conformance suites explain themselves, and no walls are put up but where a test wants.

What is asked about commands, and how they end, is tested without walls. Those are tested in `adapters/sandbox`, in
`sandbox`, and where `GREENROOM_SANDBOX` is set to `auto`.

To be measured takes a test twice as long. So of a test with many cases only the first ones are, but where every line
has to be reached; and of those that go through the doors, a few, which reach nearly all that is behind them.
"""

import math
import os
from collections import Counter
from pathlib import Path

import pytest
from coverage.config import CoverageConfig

import greenroom

pytest.register_assert_rewrite("greenroom.testing.conformance")
os.environ["GREENROOM_SANDBOX"] = "off"
MEASURING = "COVERAGE_PROCESS_CONFIG"
TESTS = Path(__file__).parent
WHOLLY = {"core", "actors"}
"""Rooms whose tests reach every line of what they test, with all of their cases."""

CASES = 10
DOORS = {"crash", "docs", "e2e", "gullible", "mutants", "sandbox"}
MEASURED = {"test_chat", "test_hands", "test_job_story", "test_mcp", "test_team"}


def pytest_collection() -> None:
    """Processes that tests start are measured too, but look up nothing for it.

    Each would look for all files of the package, to name those of which it has run no line: a fifth of a second, when
    it is enough that the tests' own process does.
    """
    if MEASURING in os.environ:
        config = CoverageConfig.deserialize(os.environ[MEASURING])
        config.source_pkgs, config.run_include = [], [str(Path(greenroom.__file__).parent / "*")]
        os.environ[MEASURING] = config.serialize()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is not measured."""
    seen: Counter[tuple[Path, str]] = Counter()
    for item in items:
        test = (item.path, getattr(item, "originalname", item.name))
        seen[test] += 1
        if seen[test] > _measured_cases(item.path):
            item.add_marker(pytest.mark.no_cover)


def _measured_cases(path: Path) -> float:
    room = path.relative_to(TESTS).parts[0]
    if room in DOORS:
        return 1 if path.stem in MEASURED else 0
    return math.inf if room in WHOLLY else CASES


@pytest.fixture(autouse=True)
def _processes_are_measured_with_their_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if MEASURING in os.environ and request.node.get_closest_marker("no_cover"):
        monkeypatch.delenv(MEASURING)
