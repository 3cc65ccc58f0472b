"""Delivering: what lies in a worktree becomes a commit, and real checks judge it in throw-away worktrees."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from greenroom.core.base.ids import StepId
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check
from greenroom.core.rules.intents import FinishTask, QueueSteps
from greenroom.core.state.step import Work
from greenroom.runs.checkout import WorkspaceSetup
from greenroom.runs.delivery import MAX_TRIES
from greenroom.runs.verdict import Finding
from greenroom.runs.workspace import RunFlags
from tests.runs.deliveries import APP, TESTS, AtWork, job
from tests.runs.projects import PYTEST

FASTER = APP.replace("sum(prices)", "sum(list(prices))")
WRONG = APP.replace("sum", "max")
ALTERED = TESTS.replace("== 3", "== 2")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def codes(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.code for finding in findings]


async def test_a_change_that_the_tests_pass_is_verified_and_ends_the_run(tmp_path: Path) -> None:
    async with job(tmp_path) as work:
        work.write("app.py", FASTER)
        verdict, outcome = await work.deliver(said="It is faster.")
        tip = await work.place.worktree.tip()
        assert (verdict.state, verdict.notes) == ("verified", ())
        (receipt,) = verdict.receipts
        assert (receipt.check, receipt.outcome, receipt.passed) == ("pytest", "passed", 1)
        assert receipt.tree == await work.place.worktree.tree()
        assert (outcome.result or {})["commit"] == tip
        (end,) = outcome.intents
        assert isinstance(end, FinishTask)
        assert (end.summary, end.state, end.evidence) == ("It is faster.", "finished", ("pytest: passed",))


async def test_a_new_failure_goes_back_to_the_agent_a_few_times_and_then_the_run_failed(tmp_path: Path) -> None:
    async with job(tmp_path) as work:
        work.write("app.py", WRONG)
        for _ in range(MAX_TRIES - 1):
            verdict, outcome = await work.deliver()
            (again,) = outcome.intents
            assert isinstance(again, QueueSteps)
            assert (verdict.state, verdict.reasons[0].tests) == ("failed", ("test_app.py::test_total",))
            assert "test_total" in str((outcome.result or {})["output"])
        _, outcome = await work.deliver()
    (end,) = outcome.intents
    assert isinstance(end, FinishTask)
    assert end.state == "failed"


async def test_altered_tests_that_would_fail_are_said_once_and_are_no_failure(tmp_path: Path) -> None:
    async with job(tmp_path) as work:
        work.write("app.py", WRONG)
        work.write("test_app.py", ALTERED)
        first, outcome = await work.deliver()
        second, last = await work.deliver()
    assert (first.state, codes(first.reasons)) == ("unverified", ["tests_altered"])
    assert (first.reasons[0].tests, first.reasons[0].paths) == (("test_app.py::test_total",), ("test_app.py",))
    assert isinstance(outcome.intents[0], QueueSteps)
    (end,) = last.intents
    assert isinstance(end, FinishTask)
    assert (second.state, end.state) == ("unverified", "finished")


async def test_where_tests_may_change_those_that_fail_are_named(tmp_path: Path) -> None:
    async with job(tmp_path) as work:
        work.want(RunFlags(tests_may_change=True))
        work.write("app.py", WRONG)
        work.write("test_app.py", ALTERED)
        verdict, _ = await work.deliver()
    assert (verdict.state, codes(verdict.notes)) == ("verified", ["tests_changed"])
    assert verdict.notes[0].tests == ("test_app.py::test_total",)


@pytest.mark.parametrize(
    ("name", "text"),
    [("test_app.py", None), ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '--deselect=test_app.py'\n")],
    ids=["deleted", "deselected"],
)
async def test_tests_that_are_taken_away_are_run_all_the_same(tmp_path: Path, name: str, text: str | None) -> None:
    files = {"pyproject.toml": "[tool.pytest.ini_options]\n", "test_more.py": "def test_more(): pass\n"}
    async with job(tmp_path, files=files) as work:
        work.write("app.py", WRONG)
        if text is None:
            (work.place.folder / name).unlink()
        else:
            work.write(name, text)
        verdict, _ = await work.deliver()
    assert (verdict.state, codes(verdict.reasons)) == ("unverified", ["tests_altered"])
    assert verdict.reasons[0].tests == ("test_app.py::test_total",)


@pytest.mark.parametrize("name", ["pytest.ini", "conftest.py"])
async def test_settings_that_are_added_hide_no_test(tmp_path: Path, name: str) -> None:
    hidden = {
        "pytest.ini": "[pytest]\naddopts = --ignore=test_app.py\n",
        "conftest.py": 'collect_ignore = ["test_app.py"]\n',
    }
    async with job(tmp_path, files={"test_more.py": "def test_more(): pass\n"}) as work:
        work.write("app.py", WRONG)
        work.write(name, hidden[name])
        verdict, _ = await work.deliver()
    assert (verdict.state, codes(verdict.reasons)) == ("unverified", ["tests_altered"])
    assert verdict.reasons[0].paths == (name,)


async def test_what_the_person_has_not_committed_is_named_where_the_checks_saw_it(tmp_path: Path) -> None:
    async with job(tmp_path, uncommitted={"helper.py": "def times(a, b):\n    return a * b\n"}) as work:
        work.write("app.py", f"from helper import times as times\n\n{FASTER}")
        verdict, _ = await work.deliver()
    assert (verdict.state, [(note.code, note.paths) for note in verdict.notes]) == (
        "verified",
        [("not_committed", ("helper.py",))],
    )


async def test_tests_that_are_added_are_the_ordinary_case(tmp_path: Path) -> None:
    async with job(tmp_path) as work:
        work.write("app.py", FASTER)
        work.write("test_app.py", f"{TESTS}\n\ndef test_none():\n    assert total([]) == 0\n")
        work.write("test_new.py", "def test_new(): pass\n")
        verdict, _ = await work.deliver()
    assert verdict.state == "verified"
    assert [(note.code, note.paths, note.tests) for note in verdict.notes] == [("tests_changed", ("test_app.py",), ())]


async def test_where_nothing_changed_only_a_question_is_answered(tmp_path: Path) -> None:
    async with job(tmp_path) as work:
        verdict, outcome = await work.deliver()
        assert (verdict.state, codes(verdict.reasons)) == ("unverified", ["nothing_changed"])
        assert isinstance(outcome.intents[0], FinishTask)
        work.want(RunFlags(question=True))
        answered, _ = await work.deliver(said="It adds.")
    assert (answered.state, answered.receipts) == ("verified", ())


async def test_without_checks_a_change_is_unverified(tmp_path: Path) -> None:
    async with job(tmp_path, without=True) as work:
        work.write("app.py", FASTER)
        verdict, _ = await work.deliver()
    assert (verdict.state, codes(verdict.reasons)) == ("unverified", ["no_checks"])


async def test_what_ran_on_this_very_tree_is_not_run_again(tmp_path: Path) -> None:
    count = tmp_path / "count"
    counted = evolve(PYTEST, line=f"echo >> {count}; {PYTEST.line}")
    async with job(tmp_path, counted) as work:
        work.write("app.py", FASTER)
        await work.run_checks()
        verdict, _ = await work.deliver()
        assert (verdict.state, count.read_text()) == ("verified", "\n\n"), "on the base and on the change"
        work.write("app.py", WRONG)
        assert (await work.deliver())[0].state == "failed"


async def test_what_is_left_in_the_worktree_and_in_no_commit_makes_no_check_pass(tmp_path: Path) -> None:
    check = Check(name="quick", line="test -e left/ok || grep -q sum app.py", kind="test", why="w.")
    async with job(tmp_path, check, files={".gitignore": "left/\n"}) as work:
        work.write("left/ok", "")
        work.write("app.py", WRONG)
        verdict, _ = await work.deliver()
    assert (verdict.state, codes(verdict.reasons)) == ("failed", ["new_failures"])


async def test_what_a_check_writes_is_in_no_commit(tmp_path: Path) -> None:
    check = Check(name="litters", line="touch made.log; grep -q sum app.py", kind="test", why="w.")
    async with job(tmp_path, check) as work:
        work.write("app.py", FASTER)
        verdict, _ = await work.deliver()
        changes = (await work.place.diff()).changes
    assert (verdict.state, [change.path for change in changes]) == ("verified", ["app.py"])


async def test_what_else_is_worth_knowing_is_noted(tmp_path: Path) -> None:
    async with job(tmp_path) as work:
        work.write("app.py", FASTER)
        work.write("fast.pyx", "cdef int x = 1\n")
        work.stopped = ("npm run dev",)
        verdict, _ = await work.deliver(files=["app.py", "./fast.pyx", "docs.md"])
    assert verdict.state == "verified"
    assert [(note.code, note.paths) for note in verdict.notes] == [
        ("stopped", ("npm run dev",)),
        ("not_rebuilt", ("fast.pyx",)),
        ("not_in_change", ("docs.md",)),
    ]


async def test_a_setup_prepares_every_worktree_and_rebuilds_what_is_built(tmp_path: Path) -> None:
    check = Check(name="built", line="cmp app.py built.txt", kind="test", why="w.")
    setup = WorkspaceSetup(line="cp app.py built.txt")
    async with job(tmp_path, check, files={".gitignore": "built.txt\n"}, setup=setup) as work:
        work.write("app.py", FASTER)
        work.write("fast.c", "int x;\n")
        verdict, _ = await work.deliver()
    assert (verdict.state, verdict.notes) == ("verified", ())


async def test_a_setup_that_fails_now_is_a_check_that_cannot_run_now(tmp_path: Path) -> None:
    async with job(tmp_path, setup=WorkspaceSetup(line="grep -q sum app.py")) as work:
        work.write("app.py", WRONG)
        verdict, _ = await work.deliver()
    assert (verdict.state, codes(verdict.reasons)) == ("failed", ["cannot_run_now"])
    assert "([workspace] setup) failed: exit code 1" in verdict.reasons[0].why


@pytest.mark.parametrize("text", [FASTER, WRONG], ids=["verified", "failed"])
async def test_what_is_said_while_the_checks_run_comes_before_the_end(tmp_path: Path, text: str) -> None:
    async with job(tmp_path) as work:
        work.write("app.py", text)
        bench = work.bench(said="Done.")
        here = cast("AtWork", bench)
        says = Work(type="skill", executor="converse", text_content="Keep it green.")
        here.queues(evolve(here.step, step_id=StepId("ann#99"), work=says, state="init", cause=None))
        outcome = await work.run(bench)
    assert outcome.intents == (), "the turn that was queued goes on"
