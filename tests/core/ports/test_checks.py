"""Checks and reports as records."""

from __future__ import annotations

import pytest

from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import (
    Check,
    CheckComparison,
    CheckReport,
    CheckResult,
    CheckRun,
    report_from_data,
    report_to_data,
)

CHECK = Check(name="npm test", line="npm test", kind="test", why="package.json says so.", means="test: jest")
DONE = CheckResult(check="c", kind="test", digest="d", outcome="passed", tests="b1", output="b2")


def test_the_digest_is_of_what_would_be_run() -> None:
    assert evolve(CHECK, name="other", why="Others say so.", seconds=1).digest == CHECK.digest
    changed = (evolve(CHECK, line="npm t"), evolve(CHECK, folder="web"), evolve(CHECK, means="test: true"))
    assert CHECK.digest not in {one.digest for one in changed}
    assert len({one.digest for one in changed}) == 3


def test_what_failed_is_known_by_id() -> None:
    ran = CheckRun(check="c", digest="d", outcome="failed", tests={"a": "failed", "b": "passed", "c": "skipped"})
    assert ran.failed_tests == {"a"}


@pytest.mark.parametrize(
    ("changes", "clean"),
    [
        ({}, True),
        ({"outcome": "failed"}, False),
        ({"outcome": "could_not_run"}, False),
        ({"steady": False}, False),
        ({"outcome": "failed", "compared": CheckComparison(old=("a",))}, True),
        ({"outcome": "failed", "compared": CheckComparison(new=("a",))}, False),
    ],
)
def test_clean_is_what_has_nothing_new(changes: dict[str, object], clean: bool) -> None:
    assert evolve(DONE, **changes).is_clean is clean


def test_a_report_is_the_same_when_it_is_read_again() -> None:
    report = CheckReport(
        tree="t", checks=(evolve(DONE, compared=CheckComparison(new=("a",))), DONE), left=("x",), base=True
    )
    assert report_from_data(report_to_data(report)) == report
    assert report.blobs == ("b1", "b2")


@pytest.mark.parametrize("held", [None, "clean", {"tree": 3}, {"checks": []}])
def test_what_is_no_report_is_none(held: object) -> None:
    assert report_from_data(held) is None
