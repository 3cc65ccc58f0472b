"""The checks of a project: on the base, beside it, in a fresh worktree, and a question when none can judge."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from immutables import Map

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, ApprovalId, StepId
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import WHOLE_CHECK, Check, CheckReport, CheckResult, CheckRun
from greenroom.core.ports.executor import StepContext
from greenroom.core.rules.intents import FinishTask
from greenroom.core.state.approval import Approval
from greenroom.runs.checker import (
    CAN_JUDGE_MESSAGE,
    GO_ON_MESSAGE,
    STOPPED_MESSAGE,
    BaselineTool,
    ConfirmUnverifiedTool,
    load_base,
    load_found_checks,
)
from greenroom.runs.output import describe_report
from greenroom.runs.verdict import BASELINE, CONFIRM_UNVERIFIED, find_base_report, find_verdict
from greenroom.runs.workspace import RunFlags
from tests.runs.deliveries import AtWork
from tests.runs.log import Story
from tests.runs.projects import PYTEST, RUN, Shelf, checker, lies_in, name_of, written

APP = "def add(a, b):\n    return a + b\n"
TESTS = """import app, pytest
def test_add(): assert app.add(1, 2) == 3
def test_old(): assert app.add(1, 1) == 3
@pytest.mark.parametrize("x", ["a - b", "[c]"])
def test_odd(x): assert x
"""
ALONE = " ".join(f"-p no:{name}" for name in ("xdist", "hypothesispytest", "asyncio", "inline_snapshot"))
"""Plugins of ours, which take a second to load, are nothing to that project."""

SET_UP = f"[tool.pytest.ini_options]\naddopts = '-q {ALONE}'\n"
SMALL = {"pyproject.toml": SET_UP, "app.py": APP, "tests/test_app.py": TESTS}


def only(report: CheckReport) -> CheckResult:
    (entry,) = report.checks
    return entry


async def test_only_what_the_work_broke_is_new(tmp_path: Path) -> None:
    written(tmp_path, SMALL)
    shelf, checks = Shelf(), checker(tmp_path)
    base = await checks.run_baseline(shelf)
    assert describe_report(base) == "pytest: 3 pass, 1 already fails"
    written(tmp_path, {"app.py": APP.replace("+", "-")})
    report = await checks.run((), shelf)
    entry = only(report)
    assert entry.compared is not None
    assert (entry.outcome, entry.exit, entry.is_clean, report.fresh) == ("failed", 1, False, True)
    assert entry.compared.new == ("tests/test_app.py::test_add",)
    assert entry.compared.old == ("tests/test_app.py::test_old",)
    assert entry.tree == report.tree == name_of(tmp_path) != only(base).tree
    assert "assert -1 == 3" in entry.excerpt
    assert b"test_add" in shelf.blobs[entry.output]
    assert b"<testsuite" not in shelf.blobs[entry.output]
    assert "<testsuite" not in shelf.shown
    assert "1 failed, 3 passed" in shelf.shown
    assert lies_in(tmp_path) == {"pyproject.toml", "app.py", "tests", "test_app.py"}, "nothing is left"
    again = checker(tmp_path, *checks.checks, base=await load_base(base, shelf.fetch))
    assert only(await again.run(["pytest"], shelf)).compared == entry.compared, "after a restart too"
    assert (await again.run(["none of this name"], shelf)).checks == ()


async def test_a_test_that_fails_once_is_flaky_and_one_that_fails_again_is_new(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    root = written(tmp_path / "project", {**SMALL, "tests/test_app.py": "def test_a(): pass\n"})
    checks = checker(root, PYTEST)
    await checks.run_baseline(Shelf())
    body = (
        f"import pathlib\nflag = pathlib.Path({str(flag)!r})\ndef test_a():\n    there = flag.exists()\n"
        "    flag.touch()\n    assert there\n"
        "import pytest\n@pytest.mark.parametrize('text', ['long' * 100])\ndef test_b(text): assert False\n"
    )
    written(root, {"tests/test_app.py": body})
    compared = only(await checks.run((), Shelf())).compared
    assert compared is not None
    assert compared.flaky == ("tests/test_app.py::test_a",)
    assert [name.partition("[")[0] for name in compared.new] == ["tests/test_app.py::test_b"]


async def test_a_file_that_cannot_be_imported_fails_by_its_name(tmp_path: Path) -> None:
    written(tmp_path, SMALL)
    checks = checker(tmp_path, PYTEST)
    await checks.run_baseline(Shelf())
    written(tmp_path, {"app.py": "def add(:\n"})
    entry = only(await checks.run((), Shelf()))
    assert entry.compared is not None
    assert (entry.compared.new, entry.exit) == (("tests/test_app.py",), 1)


async def test_a_check_that_cannot_run_says_why_and_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "a scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    root = written(tmp_path / "project", {"tests/test_none.py": "x = 1\n"})
    missing = Check(name="missing", line="no-such-program-here", kind="test", why="w.")
    late = Check(name="late", line="sleep 60", kind="test", why="w.", seconds=1)
    elsewhere = evolve(missing, name="elsewhere", folder="nowhere")
    checks = checker(root, PYTEST, missing, late, elsewhere)
    report = await checks.run_baseline(Shelf())
    reasons = {entry.check: entry.reason for entry in report.checks}
    assert all(entry.outcome == "could_not_run" for entry in report.checks)
    assert reasons["pytest"] == "It found no tests."
    assert reasons["missing"].startswith("A program is missing: ")
    assert reasons["late"] == "It did not finish within 1 s."
    assert "There is no folder 'nowhere'" in reasons["elsewhere"]
    assert lies_in(scratch) == set(), "also what was stopped leaves nothing behind"
    assert (await checks.run((), Shelf())).checks == ()


async def test_a_check_that_ran_before_and_cannot_run_now_fails_as_a_whole(tmp_path: Path) -> None:
    written(tmp_path, {"Makefile": f"test:\n\t{RUN} -m pytest -q tests\n", **SMALL})
    checks = checker(tmp_path, Check(name="make test", line="make test", kind="test", why="w."))
    base = only(await checks.run_baseline(Shelf()))
    assert (base.passed, base.failing) == (3, 1), "the report is made inside of make too"
    written(tmp_path, {"Makefile": "other:\n\ttrue\n"})
    gone = only(await checks.run((), Shelf()))
    assert (gone.outcome, gone.compared and gone.compared.new) == ("could_not_run", (WHOLE_CHECK,))


async def test_a_pytest_that_hides_its_end_is_seen_through(tmp_path: Path) -> None:
    written(tmp_path, SMALL)
    hidden = evolve(PYTEST, line=f"{PYTEST.line} || true")
    entry = only(await checker(tmp_path, hidden).run_baseline(Shelf()))
    assert (entry.exit, entry.outcome, entry.failing) == (0, "failed", 1)


async def test_a_pytest_without_reports_is_run_without(tmp_path: Path) -> None:
    ini = "[tool.pytest.ini_options]\naddopts = '-p no:junitxml -rA'\n"
    written(tmp_path, {**SMALL, "pyproject.toml": ini})
    entry = only(await checker(tmp_path, PYTEST).run_baseline(Shelf()))
    assert (entry.outcome, entry.passed, entry.failing) == ("failed", 3, 1)


async def test_checks_see_the_persons_environment_and_that_nobody_watches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    line = 'test -z "${NO_COLOR+x}" && test "$CI" = 1'
    check = Check(name="env", line=line, kind="build", why="w.")
    assert only(await checker(tmp_path, check).run_baseline(Shelf())).outcome == "passed"


async def test_what_was_kept_of_the_base_has_to_be_readable() -> None:
    async def fetch(_: str) -> bytes:
        return b"{"

    entry = CheckResult(check="c", kind="test", digest="d", outcome="passed", tests="b")
    with pytest.raises(WorldFault, match="baseline result of 'c' cannot be read"):
        await load_base(CheckReport(tree="t", checks=(entry,)), fetch)


TEST = Check(name="unit", line="true", kind="test", why="w.")
LINT = Check(name="lint", line="true", kind="lint", why="w.")
PASSED = CheckRun(check="unit", digest="d", outcome="passed")
UNABLE = CheckRun(check="unit", digest="d", outcome="could_not_run", reason="A program is missing: nosuch.")
NOTHING = RunFlags()


def at_work(answer: str | None = None, wanted: RunFlags = NOTHING) -> AtWork:
    """The step that asks, with a person's answer to it, and the first turn behind it."""
    (first,) = Story().step("converse", given=wanted.data).steps
    (step,) = Story().step(CONFIRM_UNVERIFIED).steps
    approval = ApprovalId("a1") if answer is not None else None
    here = AtWork(evolve(step, state="running", approval=approval))
    here.queues(evolve(first, step_id=StepId("ann#9"), state="init"))
    if answer is not None:
        asked = Approval(
            approval_id=ApprovalId("a1"),
            step_id=step.step_id,
            agent_id=AgentId("ann"),
            task_id=step.task_id,
            question="?",
            digest="?",
            asked_of=None,
            asked_at=0,
            words=True,
            state="approved",
            reason=answer,
        )
        here.state = evolve(here.state, approvals=Map({asked.approval_id: asked}))
    return here


def confirm(root: Path, was: CheckRun | None, *, allowed: bool = False, alone: bool = False) -> ConfirmUnverifiedTool:
    checks = (TEST, LINT) if was is not None else (LINT,)
    base = {"lint": evolve(PASSED, check="lint", kind="lint"), **({"unit": was} if was is not None else {})}
    return ConfirmUnverifiedTool(checker(root, *checks, base=base), allowed=allowed, alone=alone)


async def test_the_report_of_the_base_and_the_checks_of_the_project_are_in_the_log(tmp_path: Path) -> None:
    checks = checker(tmp_path, TEST, evolve(TEST, name="bad", line="false"))
    outcome = await BaselineTool(checks, checks.checks).run(cast("StepContext", at_work()))
    story = Story().step(BASELINE, outcome.result)
    report = find_base_report(story.steps)
    assert report is not None
    assert [entry.outcome for entry in report.checks] == ["passed", "failed"]
    assert (outcome.result or {})["output"] == "Before any change: unit: passes; bad: 1 already fails."
    assert set(report.blobs) <= set(outcome.blobs)
    assert load_found_checks(story.steps) == tuple(checks.checks)
    assert load_found_checks(Story().step("patch", {}).steps) is None
    assert BaselineTool(checks).targets({}) == ()


@pytest.mark.parametrize(
    ("was", "allowed", "alone", "wanted", "asks"),
    [
        (PASSED, False, False, NOTHING, False),
        (UNABLE, False, False, NOTHING, True),
        (None, False, False, NOTHING, True),
        (UNABLE, True, False, NOTHING, False),
        (UNABLE, False, True, NOTHING, False),
        (UNABLE, False, False, RunFlags(allow_unverified=True), False),
    ],
    ids=["a test judges", "none can run", "a linter only", "--yes", "nobody is there", "--allow-unverified"],
)
def test_a_person_is_asked_only_where_no_test_can_judge(
    tmp_path: Path, was: CheckRun | None, allowed: bool, alone: bool, wanted: RunFlags, asks: bool
) -> None:
    here = at_work(wanted=wanted)
    terms = confirm(tmp_path, was, allowed=allowed, alone=alone).terms(here.state, here.step)
    assert (terms.verdict == "ask", terms.words) == (asks, asks)
    if asks and was is not None:
        assert "unit: A program is missing: nosuch" in terms.question


@pytest.mark.parametrize(
    ("answer", "alone", "wanted", "goes_on"),
    [
        ("yes", False, NOTHING, True),
        ("Y.", False, NOTHING, True),
        ("好", False, NOTHING, True),
        ("", False, NOTHING, False),
        ("no", False, NOTHING, False),
        (None, True, NOTHING, False),
        (None, True, RunFlags(allow_unverified=True), True),
    ],
)
async def test_it_goes_on_after_a_yes_and_else_ends_before_a_model_is_asked(
    tmp_path: Path, answer: str | None, alone: bool, wanted: RunFlags, goes_on: bool
) -> None:
    outcome = await confirm(tmp_path, UNABLE, alone=alone).run(cast("StepContext", at_work(answer, wanted)))
    if goes_on:
        assert (outcome.result, outcome.intents) == ({"output": GO_ON_MESSAGE}, ())
        return
    (end,) = outcome.intents
    assert isinstance(end, FinishTask)
    assert (end.state, end.summary) == ("finished", STOPPED_MESSAGE)
    verdict = find_verdict(Story().step(CONFIRM_UNVERIFIED, outcome.result).steps)
    assert (verdict.state, [reason.code for reason in verdict.reasons]) == ("unverified", ["no_test_judged"])
    assert [(note.check, note.why) for note in verdict.notes] == [("unit", "A program is missing: nosuch")]


async def test_without_any_check_that_is_the_reason(tmp_path: Path) -> None:
    (tmp_path / "app.txt").touch()
    tool = ConfirmUnverifiedTool(checker(tmp_path), allowed=False, alone=True)
    assert tool.terms(at_work().state, at_work().step).verdict != "ask"
    outcome = await tool.run(cast("StepContext", at_work()))
    verdict = find_verdict(Story().step(CONFIRM_UNVERIFIED, outcome.result).steps)
    assert [reason.code for reason in verdict.reasons] == ["no_checks"]


async def test_where_a_test_can_judge_nothing_is_asked_and_that_is_said(tmp_path: Path) -> None:
    outcome = await confirm(tmp_path, PASSED, alone=True).run(cast("StepContext", at_work()))
    assert (outcome.result, outcome.intents) == ({"output": CAN_JUDGE_MESSAGE}, ())
