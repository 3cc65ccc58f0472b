"""A run of a check beside the one on the base."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.payload import is_large
from greenroom.core.ports.checks import (
    WHOLE_CHECK,
    CheckComparison,
    CheckEnd,
    CheckReport,
    CheckResult,
    CheckRun,
    TestStatus,
    report_to_data,
)
from greenroom.runs.output import compare, describe_report, is_same_test

NAMES = st.sampled_from(["t.py::a", "t.py::b", "t.py", "adds", "sums › adds", WHOLE_CHECK])


def ran(outcome: CheckEnd = "failed", /, *, exact: bool = False, **tests: TestStatus) -> CheckRun:
    named = {name.replace("__", "::").replace("_py", ".py"): word for name, word in tests.items()}
    return CheckRun(check="c", digest="d", outcome=outcome, exact=exact, tests=named)


def test_new_old_and_mended_are_told_apart() -> None:
    base = ran(t_py__a="failed", t_py__b="passed", t_py__c="failed")
    now = ran(t_py__a="failed", t_py__b="failed", t_py__c="passed")
    assert compare(base, now) == CheckComparison(new=("t.py::b",), old=("t.py::a",), mended=("t.py::c",))


def test_a_test_of_a_file_that_could_not_be_imported_before_is_old() -> None:
    assert compare(ran(t_py="failed"), ran(t_py__a="failed")).old == ("t.py::a",)
    assert compare(ran(t_py="failed"), ran(u_py__a="failed")).new == ("u.py::a",)


def test_a_name_that_got_the_name_of_its_file_is_the_same_test() -> None:
    base, now = ran(adds="failed"), CheckRun(check="c", digest="d", outcome="failed", tests={"sums › adds": "failed"})
    assert compare(base, now) == CheckComparison(old=("sums › adds",))
    assert compare(now, base) == CheckComparison(old=("adds",))
    assert not is_same_test("adds", "sums › also adds")


def test_what_ran_before_and_cannot_run_now_fails_as_a_whole() -> None:
    assert compare(ran("passed"), ran("could_not_run")).new == (WHOLE_CHECK,)
    assert compare(ran("could_not_run"), ran("could_not_run")) == CheckComparison()


def test_tests_are_gone_only_where_both_runs_have_a_report() -> None:
    base = ran("passed", exact=True, a="passed", b="passed", c="skipped")
    assert compare(base, ran("passed", exact=True, a="passed")).gone == ("b",)
    assert compare(base, ran("passed", a="passed")).gone == ()


def test_a_flaky_failure_is_neither_new_nor_old() -> None:
    assert compare(ran("passed", a="passed"), ran(a="failed"), ["a"]) == CheckComparison(flaky=("a",))


@given(st.sets(NAMES), st.sets(NAMES))
def test_every_failure_is_new_or_old_and_the_same_run_has_nothing_new(before: set[str], after: set[str]) -> None:
    base, now = (
        CheckRun(check="c", digest="d", outcome="failed", tests=dict.fromkeys(some, "failed"))
        for some in (before, after)
    )
    found = compare(base, now)
    assert {*found.new, *found.old} == after
    assert not {*found.new} & before
    assert compare(base, base).new == ()


def test_hundreds_of_old_findings_of_a_linter_are_counted_and_fit_into_the_log() -> None:
    findings: dict[str, TestStatus] = {f"{number:03}: {'long ' * 100}": "failed" for number in range(500)}
    base = CheckRun(check="mypy", digest="d", outcome="failed", tests=findings)
    now = CheckRun(check="mypy", digest="d", outcome="failed", tests=findings | {"new": "failed"})
    compared = compare(base, now)
    assert (compared.count("new"), compared.count("old"), compared.new) == (1, 500, ("new",))
    entry = CheckResult(check="mypy", kind="lint", digest="d", outcome="failed", failing=501, compared=compared)
    assert describe_report(CheckReport(tree="t", checks=(entry,))) == "mypy: 1 newly fails, 500 already fail"
    assert not is_large({"report": report_to_data(CheckReport(tree="t", checks=(entry,) * 4))})


def test_a_report_is_described_in_one_line() -> None:
    entry = CheckResult(check="pytest", kind="test", digest="d", outcome="failed", passed=3, failing=2, skipped=1)
    lint = CheckResult(check="ruff", kind="lint", digest="d", outcome="could_not_run", reason="A program is missing.")
    build = CheckResult(check="build", kind="build", digest="d", outcome="passed")
    assert describe_report(CheckReport(tree="t", checks=(entry, lint, build))) == (
        "pytest: 3 pass, 2 already fail, 1 skipped; ruff: could not run (A program is missing); build: passes"
    )
    later = CheckResult(
        check="c",
        kind="test",
        digest="d",
        outcome="failed",
        failing=2,
        compared=CheckComparison(new=("a",), old=("b",)),
    )
    assert describe_report(CheckReport(tree="t", checks=(later,))) == "c: 1 newly fails, 1 already fails"
    assert describe_report(CheckReport(tree="t")) == "no check was run"
