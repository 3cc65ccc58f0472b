"""The verdict: what each check said on the base and says now decides, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import (
    WHOLE_CHECK,
    Check,
    CheckComparison,
    CheckEnd,
    CheckKind,
    CheckReport,
    CheckResult,
    CheckRun,
    TestStatus,
)
from greenroom.runs.output import compare
from greenroom.runs.verdict import (
    BASELINE,
    CONFIRM_UNVERIFIED,
    DELIVER,
    RUN_CHECKS,
    ChangeFacts,
    Finding,
    Receipt,
    Verdict,
    build_unverified,
    can_judge,
    collect_known_entries,
    decide_verdict,
    decode_verdict,
    encode_verdict,
    find_base_report,
    find_verdict,
)
from tests.runs.log import Story

TEST = Check(name="pytest", line="pytest", kind="test", why="w.")
LINT = Check(name="ruff", line="ruff check .", kind="lint", why="w.")
BUILD = Check(name="build", line="make", kind="build", why="w.")
NO_FACTS = ChangeFacts()


def ran(outcome: CheckEnd, *failing: str, check: Check = TEST) -> CheckRun:
    """A run of a check with three tests, of which these fail."""
    tests: dict[str, TestStatus] = {} if outcome == "could_not_run" else dict.fromkeys("abc", "passed")
    tests |= dict.fromkeys(failing, "failed")
    passed = sum(word == "passed" for word in tests.values())
    known = CheckRun(
        check=check.name, digest="d", outcome=outcome, kind=check.kind, tests=tests, reason="Why.", exact=True
    )
    return evolve(known, passed=passed)


def entry(now: CheckRun, base: CheckRun | None = None, *flaky: str) -> CheckResult:
    """The same in a report, beside the base."""
    return CheckResult(
        check=now.check,
        kind=now.kind,
        digest="d",
        outcome=now.outcome,
        failing=len(now.failed_tests),
        passed=now.passed,
        compared=compare(base, now, flaky) if base is not None else None,
    )


def judged(
    *pairs: tuple[Check, CheckRun | None, CheckRun | None], facts: ChangeFacts = NO_FACTS, flaky: Sequence[str] = ()
) -> Verdict:
    """The verdict on these checks, each with what it said on the base and says now."""
    base = {check.name: was for check, was, _ in pairs if was is not None}
    entries = [entry(now, was, *flaky) for _, was, now in pairs if now is not None]
    return decide_verdict([check for check, _, _ in pairs], base, CheckReport(tree="t", checks=tuple(entries)), facts)


def codes(findings: Sequence[Finding]) -> list[str]:
    return [finding.code for finding in findings]


PASSED, FAILED, NAMELESS = ran("passed"), ran("failed", "a"), ran("failed", WHOLE_CHECK)
UNABLE, ALL_FAIL = ran("could_not_run"), ran("failed", "a", "b", "c")


@pytest.mark.parametrize(
    ("was", "now", "state", "reasons", "notes"),
    [
        (PASSED, PASSED, "verified", [], []),
        (PASSED, FAILED, "failed", ["new_failures"], []),
        (PASSED, NAMELESS, "failed", ["new_failures"], []),
        (PASSED, UNABLE, "failed", ["cannot_run_now"], []),
        (PASSED, None, "failed", ["cannot_run_now"], []),
        (FAILED, FAILED, "verified", [], ["fails_as_before"]),
        (FAILED, PASSED, "verified", [], []),
        (FAILED, ran("failed", "a", "b"), "failed", ["new_failures"], ["fails_as_before"]),
        (FAILED, NAMELESS, "failed", ["new_failures"], []),
        (FAILED, UNABLE, "failed", ["cannot_run_now"], []),
        (ALL_FAIL, ALL_FAIL, "unverified", ["no_test_judged"], ["fails_as_before"]),
        (ALL_FAIL, FAILED, "verified", [], ["fails_as_before"]),
        (NAMELESS, NAMELESS, "unverified", ["no_test_judged"], ["does_not_judge"]),
        (NAMELESS, PASSED, "unverified", ["no_test_judged"], ["does_not_judge", "passes_now"]),
        (UNABLE, None, "unverified", ["no_test_judged"], ["does_not_judge"]),
        (UNABLE, FAILED, "unverified", ["no_test_judged"], ["does_not_judge"]),
        (None, PASSED, "unverified", ["no_test_judged"], ["does_not_judge", "passes_now"]),
    ],
)
def test_what_a_check_said_on_the_base_and_says_now_gives_the_verdict(
    was: CheckRun | None, now: CheckRun | None, state: str, reasons: list[str], notes: list[str]
) -> None:
    found = judged((TEST, was, now))
    assert (found.state, codes(found.reasons), codes(found.notes)) == (state, reasons, notes)
    assert can_judge([TEST], {TEST.name: was} if was is not None else {}) == (notes[:1] != ["does_not_judge"])


def test_new_failures_are_named_and_counted() -> None:
    (reason,) = judged((TEST, FAILED, ran("failed", "a", "b", "c"))).reasons
    assert (reason.check, reason.tests, reason.count) == ("pytest", ("b", "c"), 2)


def test_a_failure_that_did_not_come_again_is_a_note() -> None:
    found = judged((TEST, PASSED, FAILED), flaky=["a"])
    assert (found.state, codes(found.notes)) == ("verified", ["flaky"])


def test_a_check_that_could_not_run_before_prevents_nothing() -> None:
    found = judged((TEST, PASSED, PASSED), (LINT, ran("could_not_run", check=LINT), None))
    assert (found.state, [(note.check, note.why) for note in found.notes]) == ("verified", [("ruff", "Why")])
    assert [receipt.outcome for receipt in found.receipts] == ["passed"]


def test_a_linter_alone_verifies_nothing_and_one_that_newly_fails_is_a_failure() -> None:
    passes, fails = ran("passed", check=LINT), ran("failed", "a.py: E1", check=LINT)
    alone = judged((LINT, passes, passes), (TEST, UNABLE, None))
    assert (alone.state, codes(alone.reasons)) == ("unverified", ["no_test_judged"])
    assert judged((TEST, PASSED, PASSED), (LINT, passes, fails)).state == "failed"


def test_without_checks_nothing_judges() -> None:
    found = judged()
    assert (found.state, codes(found.reasons)) == ("unverified", ["no_checks"])


def test_an_entry_that_was_never_compared_is_no_pass_when_it_fails() -> None:
    report = CheckReport(tree="t", checks=(entry(FAILED),))
    assert decide_verdict([TEST], {"pytest": PASSED}, report, NO_FACTS).state == "failed"


def old(now: CheckRun, was: CheckRun = PASSED) -> ChangeFacts:
    """Changed tests, and what those of before say of the change."""
    return ChangeFacts(altered=("test_a.py",), old=CheckReport(tree="o", checks=(entry(now, was),)))


def test_an_old_test_that_fails_by_name_is_a_doubt_unless_tests_may_change() -> None:
    found = judged((TEST, PASSED, PASSED), facts=old(FAILED))
    (reason,) = found.reasons
    assert (found.state, reason.code, reason.tests, reason.paths) == (
        "unverified",
        "tests_altered",
        ("a",),
        ("test_a.py",),
    )
    agreed = judged((TEST, PASSED, PASSED), facts=evolve(old(FAILED), tests_may_change=True))
    (note,) = agreed.notes
    assert (agreed.state, note.code, note.tests) == ("verified", "tests_changed", ("a",))


@pytest.mark.parametrize(
    ("was", "now"),
    [(PASSED, PASSED), (PASSED, NAMELESS), (PASSED, UNABLE), (FAILED, FAILED)],
    ids=["they pass", "no name", "they cannot run", "it failed before"],
)
def test_old_tests_that_name_no_new_failure_are_only_noted(was: CheckRun, now: CheckRun) -> None:
    found = judged((TEST, was, was), facts=old(now, was))
    assert (found.state, codes(found.notes)[-1]) == ("verified", "tests_changed")


def test_a_new_test_that_fails_beside_the_old_files_is_not_an_old_one() -> None:
    now = evolve(PASSED, outcome="failed", tests={**PASSED.tests, "new": "failed"})
    assert judged((TEST, PASSED, PASSED), facts=old(now)).state == "verified"
    only_counted = evolve(PASSED, passed=9)
    assert judged((TEST, only_counted, PASSED), facts=old(now, only_counted)).has_reason("tests_altered")


def test_old_tests_that_cannot_be_loaded_are_old_ones() -> None:
    now = evolve(PASSED, outcome="failed", exact=False, passed=0, tests={"test_a (_FailedTest)": "failed"})
    (reason,) = judged((TEST, PASSED, PASSED), facts=old(now)).reasons
    assert (reason.code, reason.tests) == ("tests_altered", ("test_a (_FailedTest)",))


def test_of_a_runner_that_names_no_test_the_check_itself_is_the_name() -> None:
    was = evolve(PASSED, tests={})
    now = evolve(NAMELESS, tests={WHOLE_CHECK: "failed"})
    (reason,) = judged((TEST, was, was), facts=old(now, was)).reasons
    assert (reason.code, reason.tests) == ("tests_altered", ("pytest",))


def test_what_imports_other_code_judges_nothing() -> None:
    elsewhere = Finding(code="imports_elsewhere", check="pytest", why="/home/me/app.py")
    found = judged((TEST, PASSED, PASSED), facts=ChangeFacts(elsewhere=(elsewhere,)))
    assert (found.state, found.reasons) == ("unverified", (elsewhere,))


@st.composite
def some_ran(draw: st.DrawFn, check: Check) -> CheckRun | None:
    outcome: CheckEnd | None = draw(st.sampled_from([None, *get_args(CheckEnd)]))
    if outcome is None:
        return None
    names = draw(st.sets(st.sampled_from(["a", "b", WHOLE_CHECK]), min_size=1)) if outcome == "failed" else set()
    return ran(outcome, *names, check=check)


@st.composite
def some_pairs(draw: st.DrawFn) -> list[tuple[Check, CheckRun | None, CheckRun | None]]:
    chosen = draw(st.lists(st.sampled_from([TEST, LINT, BUILD]), unique=True))
    return [(check, draw(some_ran(check)), draw(some_ran(check))) for check in chosen]


@given(some_pairs(), some_ran(TEST), st.booleans())
def test_nothing_is_verified_that_a_check_or_an_old_test_speaks_against(
    pairs: list[tuple[Check, CheckRun | None, CheckRun | None]], back: CheckRun | None, may: bool
) -> None:
    base: Mapping[str, CheckRun] = {check.name: was for check, was, _ in pairs if was is not None}
    old_report = CheckReport(tree="o", checks=(entry(back, base.get("pytest")),)) if back is not None else None
    facts = ChangeFacts(altered=("test_a.py",), old=old_report, tests_may_change=may)
    found = judged(*pairs, facts=facts)
    assert found.is_verified == (not found.reasons)
    if not found.is_verified:
        return
    kinds: set[CheckKind] = set()
    for check, was, now in pairs:
        if was is not None and was.outcome == "passed":
            assert now is not None
            assert now.outcome == "passed", check.name
        if (
            was is not None
            and now is not None
            and WHOLE_CHECK not in was.failed_tests
            and was.outcome != "could_not_run"
        ):
            assert now.failed_tests <= was.failed_tests
            kinds.add(check.kind)
    assert "test" in kinds
    if back is not None and not may:
        assert back.failed_tests - {WHOLE_CHECK} <= base["pytest"].failed_tests


def test_a_verdict_is_kept_with_its_code_and_read_again() -> None:
    kept = judged((TEST, FAILED, ran("failed", "a", "b")), (LINT, None, None))
    assert encode_verdict(kept)["code"] == "failed"
    assert decode_verdict(encode_verdict(kept)) == kept
    assert isinstance(kept.receipts[0], Receipt)


@pytest.mark.parametrize(
    ("held", "state", "why"),
    [
        ({"state": "unproven"}, "unverified", []),
        ({"state": "unproven", "missing": ["a"], "changed": ["b"], "claims": ["c"]}, "unverified", ["a", "b", "c"]),
        ({"state": "verified", "missing": [], "receipts": [{"check": "c", "tree": "t"}]}, "verified", []),
    ],
)
def test_a_verdict_of_an_older_version_is_read(held: Mapping[str, object], state: str, why: list[str]) -> None:
    found = decode_verdict(held)
    assert (found.state, [reason.why for reason in found.reasons]) == (state, why)
    assert bool(found.receipts) == ("receipts" in held)


@pytest.mark.parametrize(
    ("later", "code"),
    [
        ((), ""),
        (({"tree": "t1"}, {"text": "said"}), ""),
        (({"tree": "t2"},), "changed_later"),
        (({"tree": "t2"}, {"tree": "t1"}), "changed_later"),
    ],
    ids=["nothing", "the same files", "other files", "there and back: no check has run"],
)
def test_a_verdict_holds_for_the_files_it_was_about(later: Sequence[Mapping[str, object]], code: str) -> None:
    good = {"verdict": encode_verdict(Verdict(state="verified")), "tree": "t1"}
    story = Story().step(DELIVER, good)
    for result in later:
        story.step("patch", dict(result))
    found = find_verdict(story.steps)
    assert (found.is_verified, codes(found.reasons)) == (not code, [code] if code else [])
    assert find_verdict(story.step(DELIVER, good).steps).is_verified, "and again"


def test_only_our_own_steps_have_a_verdict() -> None:
    held = {"verdict": encode_verdict(Verdict(state="verified"))}
    assert codes(find_verdict(Story().step("patch", held).steps).reasons) == ["not_judged"]
    ended = {"verdict": encode_verdict(build_unverified("no_checks"))}
    assert codes(find_verdict(Story().step(CONFIRM_UNVERIFIED, ended).steps).reasons) == ["no_checks"]


CHECKED = CheckResult(check="pytest", kind="test", digest="d", outcome="passed", compared=CheckComparison())


def test_the_report_of_the_base_is_the_first_whole_one() -> None:
    story = Story().step(BASELINE, {}, "cancelled").checked(CHECKED, by=BASELINE, tree="old").checked(CHECKED)
    report = find_base_report(story.steps)
    assert report is not None
    assert (report.base, report.tree) == (True, "old")
    assert find_base_report([]) is None


def test_what_ran_on_this_very_tree_is_known_and_the_newest_counts() -> None:
    later = evolve(CHECKED, passed=3)
    story = Story().checked(CHECKED, by=BASELINE).checked(CHECKED, by=RUN_CHECKS).checked(later, by=DELIVER)
    story.checked(evolve(CHECKED, passed=9), state="failed").checked(evolve(CHECKED, passed=8), tree="other")
    assert collect_known_entries(story.steps, "new") == {"pytest": later}
    assert collect_known_entries(Story().checked(CHECKED, by="patch").steps, "new") == {}
