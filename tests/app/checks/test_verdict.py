"""Verified is what the log proves, and nothing else."""

from __future__ import annotations

import pytest

from greenroom.abilities.checks.claims import Facts, among
from greenroom.abilities.checks.meddling import Meddled
from greenroom.abilities.checks.syntax import SyntaxFault
from greenroom.app.checks.planning import own_check
from greenroom.app.checks.receipts import DELIVER, base_report, receipts, report_in
from greenroom.app.checks.verdict import Delivered, Verdict, verdict
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import (
    AS_A_WHOLE,
    REPORT,
    UNCOVERED,
    Check,
    Checked,
    CheckKind,
    Compared,
    Report,
    as_data,
)
from tests.app.checks.log import CLEAN, LINTED, PYTEST, RUFF, Story

NEW = Delivered(tree="new")
EDITED = Meddled(kind="test", path="t.py", said="Existing tests in t.py were changed: test_a.")
BASE = evolve(CLEAN, tree="old", compared=None)


def judged(story: Story, delivered: Delivered = NEW) -> Verdict:
    return verdict([PYTEST], story.steps, delivered)


def compared(**changes: object) -> Checked:
    return evolve(CLEAN, compared=evolve(Compared(), **changes))


def test_a_check_that_ran_last_on_what_is_delivered_proves_it() -> None:
    found = judged(Story().checked(BASE, base=True).edit().checked(CLEAN))
    assert found.verified
    (one,) = found.receipts
    assert (one.check, one.exit, one.tree, one.step, one.when, one.outcome) == (
        "pytest",
        0,
        "new",
        "ann#3",
        30,
        "clean",
    )


@pytest.mark.parametrize(
    ("story", "missing"),
    [
        (Story().edit(), "'pytest' was never run on the work."),
        (Story().checked(CLEAN, base=True), "'pytest' was never run on the work."),
        (Story().checked(CLEAN).edit(), "'pytest' ran before the last change of a file, not after it."),
        (Story().checked(CLEAN).edit("cancelled"), "'pytest' ran before the last change of a file, not after it."),
        (Story().checked(CLEAN).edit("uncertain"), "'pytest' ran before the last change of a file, not after it."),
        (
            Story().checked(evolve(CLEAN, tree="older")).step("execute_script"),
            "'pytest' ran last in step ann#1, on another tree than the one that is delivered.",
        ),
        (Story().edit().checked(CLEAN, state="cancelled"), "'pytest' was never run on the work."),
        (Story().edit().step("run_checks", {"report": {"tree": 3}}), "'pytest' was never run on the work."),
        (Story().edit().step("run_checks", {"report": "all is well"}), "'pytest' was never run on the work."),
        (
            Story().edit().checked(evolve(CLEAN, outcome="could_not_run", reason="It found no tests.")),
            "'pytest' could not run: It found no tests.",
        ),
        (
            Story().edit().checked(evolve(CLEAN, steady=False)),
            "'pytest' changed files itself, so it did not check what is delivered.",
        ),
        (
            Story().edit().checked(compared(new=("a", "b", "c", "d", "e", "f"))),
            "'pytest' fails: a, b, c, d, e and 1 more.",
        ),
        (
            Story().edit().checked(evolve(CLEAN, outcome="failed", exit=3, compared=None)),
            "'pytest' fails (exit code 3).",
        ),
        (Story().edit().checked(CLEAN).checked(compared(new=("a",))), "'pytest' fails: a."),
    ],
)
def test_what_is_missing_is_said(story: Story, missing: str) -> None:
    found = judged(story)
    assert (found.state, found.missing) == ("unproven", (missing,))


@pytest.mark.parametrize(
    "ran",
    [
        evolve(CLEAN, check="chek", outcome="could_not_run", reason="A program is missing: chek"),
        evolve(CLEAN, check="chek", outcome="failed", passed=0, compared=Compared(old=(AS_A_WHOLE,))),
    ],
)
def test_of_a_line_of_the_persons_that_is_no_good_it_is_said_where_it_stands(ran: Checked) -> None:
    typed = own_check("chek", ())
    kept = evolve(typed, why="config.toml says so in [checks.chek].")

    def told(check: Check) -> str:
        return " ".join(verdict([check], Story().edit().checked(ran).steps, NEW).missing)

    assert told(typed).endswith(
        ". You typed that line: `greenroom trust --revoke` takes it back, and the next run at a terminal asks anew."
    )
    assert told(kept).endswith(". The line is yours: config.toml says so in [checks.chek]. Change it there.")
    assert "line" not in told(evolve(typed, own=False)), "that one is the project's"


def test_an_edit_that_did_nothing_takes_no_proof_away() -> None:
    assert judged(Story().checked(CLEAN).edit("failed").edit("skipped").step("read_code")).verified


def test_every_check_that_counts_has_to_have_run() -> None:
    story = Story().edit().checked(CLEAN)
    found = verdict([PYTEST, RUFF], story.steps, NEW)
    assert found.missing == ("'ruff' was never run on the work.",)
    assert verdict([PYTEST, RUFF], story.checked(LINTED).steps, NEW).verified
    assert verdict([], story.steps, NEW).missing == (
        "No check was run: none is set up for this project, or none could be run.",
    )
    assert not verdict([PYTEST], story.steps, NEW, left=["'make test' was not run."]).verified


@pytest.mark.parametrize(
    ("checked", "said"),
    [
        (compared(gone=("a",), relieved=("a",)), "'pytest': used to fail and is not run any more: a."),
        (compared(skipped=("a", "b"), relieved=("a",)), "'pytest': newly skipped: b."),
        (compared(fewer=1), "'pytest': 1 fewer test runs than on the base."),
        (compared(gone=("a", "b"), relieved=("a",)), "'pytest': not there any more: b."),
        (evolve(CLEAN, digest="other"), "What 'pytest' runs is not what it ran on the base."),
    ],
)
def test_what_the_work_changed_of_its_judges_is_never_clean(checked: Checked, said: str) -> None:
    story = Story().checked(BASE, base=True).edit().checked(checked)
    found = judged(story)
    assert not found.verified
    assert said in found.changed
    assert found.missing == ()


def test_changed_tests_count_unless_the_old_ones_pass_too() -> None:
    story = Story().checked(BASE, base=True).edit().checked(compared(mended=("a",)))
    changed = evolve(NEW, meddled=(EDITED,))
    assert judged(story, changed).changed == (EDITED.said,)

    def restored(**changes: object) -> Delivered:
        return evolve(changed, restored=Report(tree="other", checks=(compared(**changes),)))

    assert judged(story, restored(mended=("a",))).verified
    assert judged(story, restored(mended=("a",))).remarks == (
        f"{EDITED.said} (Changed by the work itself; with everything put back as it was, the checks pass too.)",
    )
    assert not judged(story, restored(old=("a",))).verified  # the test was mended, not the code
    assert not judged(story, restored(new=("b",))).verified
    assert not judged(story, restored(gone=("b",))).verified
    assert not judged(story, evolve(changed, restored=Report(tree="other"))).verified
    unsteady = evolve(compared(mended=("a",)), steady=False)  # it has rewritten what it was to judge
    assert not judged(story, evolve(changed, restored=Report(tree="other", checks=(unsteady,)))).verified


@pytest.mark.parametrize("loss", [{"gone": ("b",)}, {"skipped": ("b",)}, {"fewer": 1}], ids=str)
def test_what_is_lost_of_the_tests_stays_lost_though_the_old_ones_pass(loss: dict[str, object]) -> None:
    """Put back, they prove the code; what is delivered has them no more."""
    story = Story().checked(BASE, base=True).edit().checked(compared(**loss))
    restored = Report(tree="other", checks=(compared(),))
    found = judged(story, evolve(NEW, meddled=(EDITED,), restored=restored))
    assert (found.state, len(found.changed)) == ("unproven", 2)


def test_old_tests_of_which_fewer_run_clear_nothing() -> None:
    story = Story().checked(BASE, base=True).edit().checked(CLEAN)
    for fewer, state in ((0, "verified"), (1, "unproven")):
        restored = Report(tree="other", checks=(compared(fewer=fewer),))
        assert judged(story, evolve(NEW, meddled=(EDITED,), restored=restored)).state == state


def test_broken_files_are_missing_proof() -> None:
    broken = evolve(NEW, broken=(SyntaxFault(path="a.py", line=3, said="invalid syntax"),))
    found = judged(Story().edit().checked(CLEAN), broken)
    assert found.missing == ("Syntax error detected in a.py, line 3: invalid syntax",)


def test_claims_are_held_against_the_receipts() -> None:
    facts = Facts(exists=among(["app.py"]))
    says = "I changed `app.py` and created `docs/json.md`. All tests pass: 12 tests passed."
    delivered = evolve(NEW, says=says, facts=facts)
    proven = judged(Story().edit().checked(CLEAN), delivered)
    assert proven.claims == ("It speaks of 'docs/json.md' as done, and there is no such file.",)
    assert not proven.verified
    assert len(judged(Story().edit(), delivered).claims) == 2
    assert judged(Story().edit().checked(CLEAN), evolve(delivered, says="All tests pass.")).verified


def test_what_else_there_is_to_know_is_said() -> None:
    one = compared(old=("a",), flaky=("b",))
    remarks = judged(Story().edit().checked(one)).remarks
    assert remarks == ("'pytest': already fails on the base: a.", "'pytest': flaky, failed and then passed: b.")
    without = judged(Story().edit().checked(evolve(CLEAN, compared=None)))
    assert without.remarks == ("'pytest' was not run on the base: what fails may be old.",)
    assert without.verified


def test_the_base_is_the_first_one() -> None:
    story = Story().checked(BASE, base=True).checked(evolve(BASE, tree="later"), base=True)
    assert base_report(story.steps) == Report(tree="old", checks=(BASE,), base=True)
    assert base_report(Story().edit().steps) is None
    assert receipts(story.steps) == ()
    assert report_in(Story().step("converse").steps[0]) is None
    (one,) = receipts(Story().checked(evolve(CLEAN, steady=False)).steps)
    assert one.outcome == "changed_files"


def test_what_an_agent_ran_itself_and_what_ran_where_it_worked_prove_nothing() -> None:
    clean = Report(tree="new", checks=(CLEAN,), fresh=True)
    told: dict[str, object] = {REPORT: dict(as_data(clean))}
    worked_in: dict[str, object] = {REPORT: dict(as_data(evolve(clean, fresh=False)))}
    for story in (Story().edit().step("run_checks", told), Story().edit().step(DELIVER, worked_in)):
        assert judged(story).missing == ("'pytest' was never run on the work.",)
    forged: dict[str, object] = {REPORT: dict(as_data(Report(tree="old", checks=(CLEAN,), base=True)))}
    assert base_report(Story().step("mcp_look", forged).steps) is None, "only the house's own run on the base is one"


UNABLE = evolve(BASE, outcome="could_not_run", reason="It found no tests.", passed=0)


def test_a_check_that_could_not_run_on_the_base_counts_only_with_tests_that_pass() -> None:
    found = judged(Story().checked(UNABLE, base=True).edit().checked(CLEAN))
    assert found.verified
    assert found.remarks == ("'pytest' could not run on the base (It found no tests): nothing is compared.",)
    silent = judged(Story().checked(UNABLE, base=True).edit().checked(evolve(CLEAN, passed=0)))
    assert not silent.verified
    (told,) = silent.missing
    assert told.startswith("'pytest' could not run on the base (It found no tests), and now it ends well and names no")


@pytest.mark.parametrize(
    ("base", "now", "wrong"),
    [
        (BASE, evolve(CLEAN, passed=15), False),
        (BASE, evolve(CLEAN, passed=14), True),
        (BASE, evolve(CLEAN, passed=13, skipped=2), False),
        (evolve(BASE, passed=0), evolve(CLEAN, passed=0), False),
    ],
    ids=["so many", "one too few", "one is skipped", "nobody counts"],
)
def test_tests_that_were_said_to_be_added_are_counted(base: Checked, now: Checked, wrong: bool) -> None:
    says = Delivered(tree="new", says="I added 3 tests.", facts=Facts(exists=among([])))
    found = judged(Story().checked(base, base=True).edit().checked(now), says)
    assert found.verified is not wrong
    assert any("3 tests were added" in one for one in found.claims) is wrong


@pytest.mark.parametrize(
    ("kind", "old", "passed", "proves"),
    [
        ("test", ("test_old.py",), 0, False),
        ("test", (AS_A_WHOLE,), 0, False),
        ("test", ("test_old.py::test_a",), 3, True),
        ("test", (AS_A_WHOLE,), 3, True),
        ("lint", (AS_A_WHOLE,), 0, False),
        ("lint", ("app.py: unused import",), 0, True),
    ],
)
def test_a_check_that_fails_as_a_whole_before_and_after_the_work_proves_nothing(
    kind: CheckKind, old: tuple[str, ...], passed: int, proves: bool
) -> None:
    red = evolve(BASE, kind=kind, outcome="failed", exit=2, passed=passed, failing=1)
    now = evolve(red, tree="new", compared=Compared(old=old))
    found = judged(Story().checked(red, base=True).edit().checked(now))
    blind = "'pytest' fails on the base as a whole, so it proves nothing: mend it first, or name another check."
    assert (found.verified, found.missing) == (proves, () if proves else (blind,))


def test_a_check_whose_only_test_is_flaky_is_not_called_red_on_the_base() -> None:
    now = evolve(CLEAN, outcome="failed", exit=1, passed=0, compared=Compared(flaky=("a",)))
    assert judged(Story().checked(BASE, base=True).edit().checked(now)).verified


@pytest.mark.parametrize(
    ("alone", "proves"),
    [
        (compared(new=("t.py::a",)), False),
        (evolve(compared(new=(AS_A_WHOLE,)), outcome="failed", passed=0), False),
        (evolve(compared(new=(AS_A_WHOLE,)), outcome="could_not_run"), False),
        (evolve(compared(new=(AS_A_WHOLE,)), outcome="failed", passed=3), False),
        (evolve(compared(new=(UNCOVERED,)), outcome="failed", passed=3), True),  # what is new is not covered by them
        (evolve(compared(new=(UNCOVERED, "t.py::a")), outcome="failed", passed=3), False),
        (evolve(LINTED, compared=Compared(new=("x",))), True),
        (evolve(compared(new=(UNCOVERED,), fewer=1), outcome="failed", passed=3), False),
        (compared(gone=("t.py::a",)), False),
        (compared(old=("t.py::b",)), True),
    ],
)
def test_tests_that_pass_only_beside_those_of_the_work_prove_nothing(alone: Checked, proves: bool) -> None:
    restored = Report(tree="put back", checks=(alone,), fresh=True)
    found = judged(Story().checked(BASE, base=True).edit().checked(CLEAN), evolve(NEW, restored=restored))
    assert found.verified is proves
    assert all("passes only beside the test files of the work" in one for one in found.missing)


FLOOR = evolve(compared(new=(UNCOVERED,)), outcome="failed", passed=3)
"""All old tests pass, and what is new is not covered by them."""


def test_old_tests_that_do_not_cover_what_is_new_clear_a_changed_judge_too() -> None:
    story = Story().checked(BASE, base=True).edit().checked(CLEAN)
    for alone, state in ((FLOOR, "verified"), (evolve(FLOOR, compared=Compared(new=(AS_A_WHOLE,))), "unproven")):
        restored = Report(tree="other", checks=(alone,))
        assert judged(story, evolve(NEW, meddled=(EDITED,), restored=restored)).state == state


def test_tests_that_are_added_may_cover_what_was_not_covered_on_the_base() -> None:
    for name, state in ((UNCOVERED, "verified"), (AS_A_WHOLE, "unproven")):
        story = Story().checked(BASE, base=True).edit().checked(compared(mended=(name,)))
        alone = evolve(compared(old=(name,)), outcome="failed", passed=3)
        assert judged(story, evolve(NEW, restored=Report(tree="put back", checks=(alone,)))).state == state


def test_what_passes_now_and_fails_with_the_old_tests_was_not_mended() -> None:
    story = Story().checked(BASE, base=True).edit().checked(compared(mended=("t.py::a", "t.py::b")))
    for mended, proves in ((("t.py::b",), False), (("t.py::a", "t.py::b"), True)):
        restored = Report(tree="put back", checks=(compared(old=("t.py::c",), mended=mended),), fresh=True)
        found = judged(story, evolve(NEW, restored=restored))
        assert found.verified is proves
        assert all("put back as they were: t.py::a. Tests were changed" in one for one in found.missing)


def test_numbers_are_no_lies_where_nobody_counts() -> None:
    says = Delivered(tree="new", says="All 12 tests pass.", facts=Facts(exists=among([])))
    silent = evolve(CLEAN, passed=0)
    assert judged(Story().edit().checked(silent), says).verified
    assert judged(Story().edit().checked(evolve(CLEAN, passed=11)), says).claims == (
        "It says that 12 tests pass; in the run that counts it were 11.",
    )
    lint = verdict([RUFF], Story().edit().checked(LINTED).steps, says)
    assert lint.claims == ("It says that all tests pass, and none of the checks runs tests.",)


def test_tests_that_are_deleted_are_lost_only_where_nobody_counts_them() -> None:
    gone = evolve(NEW, deleted=("t.sh was deleted.",))
    assert judged(Story().edit().checked(CLEAN), gone).verified
    found = judged(Story().edit().checked(evolve(CLEAN, passed=0)), gone)
    assert (found.verified, found.lost, found.changed) == (False, True, ("t.sh was deleted.",))
