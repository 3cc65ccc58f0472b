"""Tests that are not what they were: what that means to the verdict, and what a person may agree to beforehand."""

from __future__ import annotations

import pytest

from greenroom.abilities.checks.meddling import Meddled
from greenroom.app.checks.verdict import Delivered, Verdict, verdict
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Checked, Compared, Report
from tests.app.checks.log import CLEAN, PYTEST, Story

EDITED = Meddled(kind="test", path="t.py", said="Existing tests in t.py were changed: test_a.")
INSIDE = evolve(EDITED, said="Tests inside of a.rs were changed.", apart=False)
SETTINGS = Meddled(kind="set-up", path="pyproject.toml", said="The settings of checks in pyproject.toml were changed.")
BASE = evolve(CLEAN, tree="old", compared=None)
GONE = evolve(CLEAN, compared=Compared(gone=("test_a",)))
FAILS = evolve(CLEAN, outcome="failed", exit=1, compared=Compared(new=("test_b",)))
AGREED = "(Tests may change: you have said so.)"


def judged(now: Checked, *found: Meddled, may: bool = True, restored: Checked | None = None) -> Verdict:
    delivered = Delivered(tree="new", meddled=found, tests_may_change=may)
    if restored is not None:
        delivered = evolve(delivered, restored=Report(tree="new", checks=(restored,)))
    return verdict([PYTEST], Story().checked(BASE, base=True).edit().checked(now).steps, delivered)


@pytest.mark.parametrize(
    ("now", "found", "said"),
    [
        (CLEAN, (EDITED,), EDITED.said),
        (CLEAN, (INSIDE,), INSIDE.said),
        (GONE, (), "'pytest': not there any more: test_a."),
    ],
    ids=["changed", "changed in a file with the work", "gone"],
)
def test_what_became_of_old_tests_is_a_note_where_that_was_agreed_to(
    now: Checked, found: tuple[Meddled, ...], said: str
) -> None:
    agreed = judged(now, *found)
    assert (agreed.verified, agreed.changed, agreed.remarks) == (True, (), (f"{said} {AGREED}",))
    unsaid = judged(now, *found, may=False)
    assert (unsaid.verified, unsaid.changed, unsaid.only_tests) == (False, (said,), True)


def test_that_old_tests_fail_beside_the_work_is_a_note_too() -> None:
    assert not judged(CLEAN, may=False, restored=FAILS).verified
    agreed = judged(CLEAN, EDITED, restored=FAILS)
    assert agreed.verified
    assert any("with those put back as they were, it fails: test_b" in one for one in agreed.remarks)


def test_new_failures_count_whatever_was_agreed_to() -> None:
    assert judged(FAILS, EDITED).missing == ("'pytest' fails: test_b.",)


def test_where_something_else_was_changed_that_judges_the_work_it_is_judged_as_always() -> None:
    found = judged(GONE, EDITED, SETTINGS)
    assert not found.verified, "the settings may be why the test is gone"
    assert (set(found.changed) >= {SETTINGS.said, EDITED.said}, found.only_tests) == (True, False)
