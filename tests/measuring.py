"""Measure line coverage of the tests at low cost, if coverage was started with them (`./go test`).

Coverage doubles the run time of Python. So it is active only while a test runs, not during collection and reports. Of a
parametrized test only the first cases are measured, except where every line must be reached. Of the tests through the
command line only a few are measured, which reach nearly everything behind it.
"""

import importlib
import math
import os
import pkgutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from coverage import Coverage
from coverage.config import CoverageConfig

import greenroom

MEASURING = "COVERAGE_PROCESS_CONFIG"
TESTS = Path(__file__).parent
WHOLLY = {"core", "actors"}
"""Rooms whose tests must reach every line, with all of their cases."""

CASES = 10
DOORS = {"crash", "docs", "e2e", "gullible", "mutants", "sandbox"}
MEASURED = {"test_chat", "test_hands", "test_job_story", "test_mcp", "test_team"}

running = Coverage.current()
"""The active coverage, if any."""

FIRST = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"
"""Whether this process is the worker that measures module loading."""

if running is not None and not FIRST:
    running.stop()

os.environ.pop("COVERAGE_PROCESS_START", None)  # what it says is in the other variable now, which tests can take away


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Measure the loading of all modules together, then nothing until the first test."""
    if running is None:
        return
    hands_out = session.config.getoption("dist", "no") != "no" and not hasattr(session.config, "workerinput")
    for module in pkgutil.walk_packages(greenroom.__path__, "greenroom.") if FIRST and not hands_out else ():
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    running.stop()
    _processes_look_up_nothing()


def pytest_unconfigure() -> None:
    """Save the data: a worker process is not waited for."""
    if running is not None:
        running.save()


def _processes_look_up_nothing() -> None:
    """Keep child processes from searching all files of the package. They are measured too, and each would spend a fifth
    of a second on it; the tests' own process does it once."""
    config = CoverageConfig.deserialize(os.environ[MEASURING])
    config.source_pkgs, config.run_include = [], [str(Path(greenroom.__file__).parent / "*")]
    os.environ[MEASURING] = config.serialize()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that are not measured."""
    if running is None:
        return
    seen: Counter[tuple[Path, str]] = Counter()
    for item in items:
        test = (item.path, getattr(item, "originalname", item.name))
        seen[test] += 1
        if seen[test] > _measured_cases(item.path):
            item.add_marker(pytest.mark.no_cover)


def _measured_cases(path: Path) -> float:
    room = path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else ""
    if room in DOORS:
        return 1 if path.stem in MEASURED else 0
    return math.inf if room in WHOLLY else CASES


@pytest.hookimpl(wrapper=True, trylast=True)
def _only_here(item: pytest.Item) -> Iterator[None]:
    """Measure one of the three phases of a test, and the processes that it starts."""
    if running is None:
        return (yield)
    if item.get_closest_marker("no_cover"):
        config = os.environ.pop(MEASURING)
        try:
            return (yield)
        finally:
            os.environ[MEASURING] = config
    running.start()
    try:
        return (yield)
    finally:
        running.stop()


pytest_runtest_setup = pytest_runtest_call = pytest_runtest_teardown = _only_here
