"""What is said of how tests ended, held against how they did."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import pytest

from greenroom.app.checks.ended_tests import Endings, ended_otherwise, how_tests_ended, new_and_skipped
from greenroom.app.checks.receipts import base_report, receipts
from greenroom.core.base.records import encode, evolve
from greenroom.core.ports.checks import Compared, Ran, Word
from tests.app.checks.log import CLEAN, LINTED, Story

OLD: Mapping[str, Word] = {"t.py::test_ok": "passed", "t.py::test_old": "failed"}
TRIPLE: Mapping[str, Word] = {"t.py::test_triple": "skipped"}
FAILS = "It says that 'test_old' passes, and it fails (as it did before)."
SKIPPED = "It says that 'test_triple' passes, and it was skipped or expected to fail."
ALL = "It says that all tests pass, and t.py::test_old fails (as it did before)."
ENDS = "It says that pytest ends well, and t.py::test_old fails (as it did before)."
NEW = "It says that its tests pass, and those that are new were skipped or expected to fail: t.py::test_triple."


def kept(now: Mapping[str, Word], base: Mapping[str, Word]) -> Callable[[str], Awaitable[bytes]]:
    """What the runs on the base and on the work have kept."""

    async def fetch(blob: str) -> bytes:
        ran = Ran(check="pytest", digest="d", outcome="failed", exit=1, exact=True)
        return encode(evolve(ran, tests=now if blob == "now" else base))

    return fetch


async def ended(now: Mapping[str, Word], base: Mapping[str, Word] | None) -> Endings:
    """How tests ended, beside a base."""
    compared = Compared(old=tuple(one for one, word in now.items() if word == "failed" and one in (base or {})))
    story = Story()
    if base is not None:
        story = story.checked(evolve(CLEAN, tests="base"), LINTED, base=True)
    story = story.checked(evolve(CLEAN, tests="now", compared=compared), LINTED)
    return await how_tests_ended(receipts(story.steps), base_report(story.steps), kept(now, base or {}))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("`test_old` passes now.", (FAILS,)),
        ("I fixed `test_old`; the whole suite is green.", (FAILS, ALL)),
        ("All tests pass.", (ALL,)),
        ("The failing test is fixed and pytest exits with code 0.", (ENDS,)),
        ("`test_triple` passes.", (SKIPPED,)),
        ("Added `triple` with `test_triple`; it passes.", (SKIPPED,)),
        ("Added triple; its test passes.", (NEW,)),
        ("`test_ok` passes.", ()),
        ("`test_old` passes now; no, `test_old` still fails.", ()),
        ("All tests pass except `test_old`, which failed before.", ()),
        ("`test_triple` passes where there is a network; here it is skipped.", ()),
        ("Its test passes, or is skipped.", ()),
        ("Done.", ()),
    ],
)
async def test_what_failed_or_was_skipped_does_not_pass(said: str, told: tuple[str, ...]) -> None:
    tests = await ended({**OLD, **TRIPLE}, OLD)
    assert tuple(ended_otherwise(said, tests, clean=True)) == told


async def test_what_fails_and_did_not_before_is_said_so() -> None:
    tests = await ended({**OLD, "t.py::test_new": "failed"}, {"t.py::test_old": "failed"})
    assert list(ended_otherwise("`test_new` passes.", tests, clean=False)) == [
        "It says that 'test_new' passes, and it fails."
    ]
    told = "It says that all tests pass, and t.py::test_old, t.py::test_new fail."
    assert list(ended_otherwise("All tests pass.", tests, clean=True)) == [told]
    assert not list(ended_otherwise("All tests pass.", tests, clean=False)), "it is said already that nothing proves it"


async def test_new_tests_that_were_skipped_are_named_where_the_base_is_known() -> None:
    now = {**OLD, **TRIPLE}
    told = ("'pytest': new tests that were skipped or expected to fail: t.py::test_triple.",)
    assert new_and_skipped(await ended(now, OLD)) == told
    assert new_and_skipped(await ended(now, now)) == new_and_skipped(await ended(now, None)) == ()


async def test_one_new_test_that_passes_may_be_meant() -> None:
    tests = await ended({**OLD, **TRIPLE, "t.py::test_four": "passed"}, OLD)
    assert list(ended_otherwise("Its tests pass.", tests, clean=True)) == []
