"""How tests ended that are spoken of by some of their name, and which of them are new."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from greenroom.abilities.checks.endings import by_name, endings, how_it_ended, new_tests
from greenroom.abilities.checks.passing_claims import Told
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import AS_A_WHOLE, Compared, Ran, Word

RAN = Ran(check="pytest", digest="d", outcome="failed", exit=1, exact=True)
TESTS: Mapping[str, Word] = {
    "a.py::test_ok": "passed",
    "a.py::test_old": "failed",
    "a.py::test_later": "skipped",
    "a.py::test_both": "failed",
    "b.py::TestB::test_both": "passed",
    "a.py::test_many[1]": "passed",
    "a.py::test_many[2]": "failed",
    "a.py::test_some[1]": "passed",
    "a.py::test_some[2]": "skipped",
    "test_unit (tests.test_a.A.test_unit)": "skipped",
    "adds two numbers": "skipped",
}


@pytest.mark.parametrize(
    ("told", "word"),
    [
        (Told(name="test_ok"), "passed"),
        (Told(name="test_old"), "failed"),
        (Told(name="test_later"), "skipped"),
        (Told(name="test_both"), "passed"),
        (Told(name="test_both", within="a.py"), "failed"),
        (Told(name="test_both", within="b.py::TestB"), "passed"),
        (Told(name="test_both", within="c.py"), None),
        (Told(name="test_many"), "failed"),
        (Told(name="test_many", parameters="[1]"), "passed"),
        (Told(name="test_many", parameters="[3]"), None),
        (Told(name="test_some"), "passed"),
        (Told(name="test_unit"), "skipped"),
        (Told(name="adds two numbers"), "skipped"),
        (Told(name="test_none"), None),
    ],
)
def test_of_all_that_are_called_so_the_best_counts_and_of_one_the_worst(told: Told, word: Word | None) -> None:
    assert how_it_ended(told, by_name([TESTS])) == word


def test_what_passes_in_one_check_is_not_said_to_fail_for_another() -> None:
    every: list[Mapping[str, Word]] = [{"a.py::test_old": "failed"}, {"a.py::test_old": "passed"}]
    assert how_it_ended(Told(name="test_old"), by_name(every)) == "passed"


def test_what_is_flaky_passed_and_what_is_no_test_did_not_fail() -> None:
    ran = evolve(RAN, tests={"a.py::test_a": "failed", "a.py::test_b": "failed", AS_A_WHOLE: "failed"})
    assert endings(ran, Compared(flaky=("a.py::test_a",))) == {"a.py::test_a": "passed", "a.py::test_b": "failed"}
    assert endings(ran, None) == {"a.py::test_a": "failed", "a.py::test_b": "failed"}
    assert endings(evolve(ran, kind="lint"), None) == endings(evolve(ran, outcome="could_not_run"), None) == {}


@pytest.mark.parametrize(
    ("base", "new"),
    [
        ({"a.py::test_a": "passed"}, {"a.py::test_b", "c.py::test_a"}),
        ({"a.py::test_a": "passed", "a.py::test_b": "skipped"}, {"c.py::test_a"}),
        ({"a.py::test_a": "passed", "b.py::test_b": "skipped"}, {"c.py::test_a"}),
        ({"a.py::test_a": "passed", "a.py::test_b[1]": "skipped"}, {"c.py::test_a"}),
    ],
    ids=["new ones", "one was there", "one was moved", "one has other parameters"],
)
def test_what_the_base_had_not_is_new(base: Mapping[str, Word], new: set[str]) -> None:
    now: Mapping[str, Word] = {"a.py::test_a": "passed", "a.py::test_b[2]": "skipped", "c.py::test_a": "skipped"}
    if "a.py::test_b[1]" not in base:
        now = {one.partition("[")[0]: word for one, word in now.items()}
    assert set(new_tests(now, evolve(RAN, tests=base))) == new


def test_where_nobody_knows_what_the_base_had_nothing_is_new() -> None:
    now: Mapping[str, Word] = {"adds": "skipped"}
    counted = evolve(RAN, exact=False, outcome="passed", tests={"old": "passed"}, passed=1)
    assert new_tests(now, counted) == now
    assert new_tests(now, evolve(counted, passed=2)) == new_tests(now, evolve(counted, skipped=1)) == {}
    assert new_tests(now, evolve(counted, tests={}, passed=0)) == new_tests(now, None) == {}
    assert new_tests(now, evolve(RAN, outcome="could_not_run")) == {}
