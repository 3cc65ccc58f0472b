"""Which lines the tests reach is measured, when coverage was started with them (`./go test`), and costs little.

While it is measured all Python takes twice as long. So it is only while a test runs, and not while pytest finds them,
hands them out and reports; of a test with many cases only in the first ones, but where every line has to be reached;
and of those that go through the doors in a few, which reach nearly all that is behind them.
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
"""Rooms whose tests reach every line of what they test, with all of their cases."""

CASES = 10
DOORS = {"crash", "docs", "e2e", "gullible", "mutants", "sandbox"}
MEASURED = {"test_chat", "test_hands", "test_job_story", "test_mcp", "test_team"}

running = Coverage.current()
"""What measures, if anything does."""

FIRST = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"
"""Whether this process is the one of several that measures what is run when a module is loaded."""

if running is not None and not FIRST:
    running.stop()

os.environ.pop("COVERAGE_PROCESS_START", None)  # what it says is in the other variable now, which tests can take away


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Measure what is run when a module is loaded, at once for all of them, and then nothing until the first test."""
    if running is None:
        return
    hands_out = session.config.getoption("dist", "no") != "no" and not hasattr(session.config, "workerinput")
    for module in pkgutil.walk_packages(greenroom.__path__, "greenroom.") if FIRST and not hands_out else ():
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    running.stop()
    _processes_look_up_nothing()


def pytest_unconfigure() -> None:
    """Keep it: a process that is one of several is not waited for."""
    if running is not None:
        running.save()


def _processes_look_up_nothing() -> None:
    """Processes that tests start are measured too.

    Each would look for all files of the package, to name those of which it has run no line: a fifth of a second, when
    it is enough that the tests' own process does.
    """
    config = CoverageConfig.deserialize(os.environ[MEASURING])
    config.source_pkgs, config.run_include = [], [str(Path(greenroom.__file__).parent / "*")]
    os.environ[MEASURING] = config.serialize()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is not measured."""
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
    """Measure one of the three parts of a test, and the processes that it starts."""
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
