"""Tests that are spoken of by name, and files with tests, held against what ran."""

import pytest

from greenroom.app.checks.named_tests import left_alone, never_ran, says_they_pass
from greenroom.app.checks.receipts import receipts
from greenroom.core.base.records import encode, evolve
from greenroom.core.ports.checks import Checked, Ran
from tests.app.checks.log import CLEAN, LINTED, PYTEST, RUFF, Story

SAID = "`test_yaml` passes."
NEVER = ("It speaks of the test 'test_yaml', and no such test ran.",)
TESTED = evolve(CLEAN, tests="blob")


def report(names: list[str], *, exact: bool = True) -> bytes:
    """What a runner has kept of these tests, which pass."""
    ran = Ran(check="pytest", digest="d", kind="test", outcome="passed", exit=0, exact=exact)
    return encode(evolve(ran, tests=dict.fromkeys(names, "passed")))


@pytest.mark.parametrize(
    ("checks", "exact", "names", "told"),
    [
        ([TESTED], True, ["a.py::test_yaml"], ()),
        ([TESTED], True, ["a.py::test_json"], NEVER),
        ([TESTED], False, [], ()),
        ([LINTED], True, [], NEVER),
        ([], True, [], ()),
    ],
    ids=["it ran", "another one ran", "nobody knows which", "no check runs tests", "no check ran"],
)
async def test_a_test_of_which_is_spoken_is_among_those_that_ran(
    checks: list[Checked], exact: bool, names: list[str], told: tuple[str, ...]
) -> None:
    async def fetch(_: str) -> bytes:
        return report(names, exact=exact)

    assert await never_ran(SAID, receipts(Story().checked(*checks).steps) if checks else (), fetch) == told


UNRUN = ("No check has run lib/test_b.py: whether those tests pass nobody knows.",)


@pytest.mark.parametrize(
    ("check", "exact", "names", "told"),
    [
        (TESTED, True, ["test_a.py::test_one"], UNRUN),
        (TESTED, True, ["test_a.py::test_one", "lib/test_b.py::test_b"], ()),
        (TESTED, False, [], ()),
        (LINTED, True, [], ("No check has run test_a.py, lib/test_b.py: whether those tests pass nobody knows.",)),
    ],
    ids=["one of two", "both", "nobody knows which", "no check runs tests"],
)
async def test_a_file_with_tests_that_no_check_has_run_is_named(
    check: Checked, exact: bool, names: list[str], told: tuple[str, ...]
) -> None:
    async def fetch(_: str) -> bytes:
        return report(names, exact=exact)

    paths = ["test_a.py", "lib/test_b.py", "app.py", "conftest.py", "tests/data.json"]
    ran = receipts(Story().checked(check).steps)
    assert await left_alone(paths, [PYTEST, RUFF], ran, fetch) == told


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("I added a test in test_other.py; it passes.", True),
        ("I wrote tests/test_calc.py. They all pass.", True),
        ("新增了测试文件，测试均已通过。", True),
        ("I could not run the tests: pytest is missing.", False),
        ("They should pass once pytest is there.", False),
        ("It passes the rows to the writer.", False),
    ],
)
def test_that_they_pass_is_said_or_not(said: str, wrong: bool) -> None:
    assert bool(says_they_pass(said)) is wrong
