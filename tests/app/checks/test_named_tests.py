"""Tests that are spoken of by name, held against what ran."""

import pytest

from greenroom.app.checks.named_tests import never_ran
from greenroom.app.checks.receipts import receipts
from greenroom.core.base.records import encode, evolve
from greenroom.core.ports.checks import Checked, Ran
from tests.app.checks.log import CLEAN, LINTED, Story

SAID = "`test_yaml` passes."
NEVER = ("It speaks of the test 'test_yaml', and no such test ran.",)
TESTED = evolve(CLEAN, tests="blob")


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
        ran = Ran(check="pytest", digest="d", kind="test", outcome="passed", exit=0, exact=exact)
        return encode(evolve(ran, tests=dict.fromkeys(names, "passed")))

    assert await never_ran(SAID, receipts(Story().checked(*checks).steps) if checks else (), fetch) == told
