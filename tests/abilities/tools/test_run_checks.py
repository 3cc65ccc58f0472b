"""The tool that runs checks: what it touches, what a model reads, what the log keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from greenroom.abilities.tools.run_checks import MAX_LINES, RunChecksTool, render_report
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.toolset.pipeline import ToolPipeline
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check, CheckComparison, CheckObserver, CheckReport, CheckResult
from greenroom.core.state.step import PreparedEffect
from greenroom.policy.policy import build_rules_policy
from greenroom.runs.verdict import read_report
from tests.abilities.tools.calling import T1, caller

TESTS = Check(name="pytest", line="pytest -q", kind="test", why="w.")
LINT = Check(name="ruff", line="ruff check .", kind="lint", why="w.")
DONE = CheckResult(check="pytest", kind="test", digest="d", outcome="passed", exit=0, tree="t", passed=3)


class Said:
    """Checks that come out as the test says."""

    def __init__(self, *checks: Check, report: CheckReport | None = None) -> None:
        self.checks: Sequence[Check] = checks
        self.asked: list[Sequence[str]] = []
        self._report = report or CheckReport(tree="t", checks=(DONE,))

    async def run(self, only: Sequence[str], observer: CheckObserver) -> CheckReport:
        self.asked.append(only)
        await observer.prepare(PreparedEffect(kind="process", key="1"))
        blob = await observer.keep(b"all of it")
        return evolve(self._report, checks=tuple(evolve(one, output=blob) for one in self._report.checks))


async def test_the_report_is_in_the_log_and_can_be_read_from_it() -> None:
    said = Said(TESTS, LINT)
    async with caller([RunChecksTool(said)]) as team:
        step = await team.call("run_checks", only=["pytest"])
        bad = await team.call("run_checks", only=["jest"])
        odd = await team.call("run_checks", names=["pytest"])
    assert said.asked == [("pytest",)]
    assert step.state == "finished"
    assert (step.result or {})["output"] == "pytest: passes (3 passed).\nNothing newly fails."
    found = read_report(step)
    assert found is not None
    assert found.checks[0].output in step.blobs
    assert bad.state == odd.state == "failed"
    assert "There is no check 'jest'. There are: pytest, ruff." in bad.error
    assert "names" in odd.error


async def test_a_project_without_checks_is_told_so_and_nobody_is_asked_about_it() -> None:
    async with caller([RunChecksTool(Said())]) as team:
        step = await team.call("run_checks")
    assert "no checks that can be run" in step.error
    assert "execute_script" in step.error
    tool, policy = RunChecksTool(Said()), build_rules_policy({}, "/work")
    assert policy.decide(AgentId("a"), tool.card, tool.targets({})).verdict == "allow"


class Stuck(Said):
    """Checks that come to no end."""

    def __init__(self, *checks: Check) -> None:
        super().__init__(*checks)
        self.begun = asyncio.Event()

    async def run(self, only: Sequence[str], _: CheckObserver) -> CheckReport:
        self.asked.append(only)
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody waits that long")


async def test_checks_that_were_cut_off_are_run_again(tmp_path: Path) -> None:
    stuck, said = Stuck(TESTS), Said(TESTS)
    async with caller([RunChecksTool(stuck)], await SqliteLog.open(tmp_path)) as team:
        await team.begin("run_checks")
        await asyncio.wait_for(stuck.begun.wait(), 30)
        name = team.team
    async with caller([RunChecksTool(said)], await SqliteLog.open(tmp_path), name) as team:
        await asyncio.wait_for(team.runtime.wait(team.team, T1), 30)
        (step,) = await team.steps()
    assert (step.state, step.attempt, len(said.asked)) == ("finished", 2, 1)


def test_it_is_decided_about_as_about_the_commands_that_it_runs() -> None:
    tool = RunChecksTool(Said(TESTS, LINT))
    assert [one.value for one in tool.targets({})] == ["pytest -q", "ruff check ."]
    assert [one.value for one in tool.targets({"only": ["ruff"]})] == ["ruff check ."]
    assert tool.targets({"only": 3}) == tool.targets({"only": ["x"]}) == tool.targets({}), "whoever is asked sees what"
    for holds, verdict in ((True, "allow"), (False, "ask")):
        policy = build_rules_policy({}, "/work", is_sandboxed=partial(bool, holds))
        assert policy.decide(AgentId("a"), tool.card, tool.targets({})).verdict == verdict
    assert ToolPipeline(tool, build_rules_policy({}, "/work")).card.effect == "keyed"  # cut off, it is run again


def test_what_newly_fails_stands_first_with_the_part_that_tells_why() -> None:
    known = CheckComparison(
        new=("t.py::a",), old=("t.py::b",), mended=("t.py::c",), flaky=("t.py::d",), gone=("t.py::e",), fewer=1
    )
    one = evolve(DONE, outcome="failed", exit=1, failing=2, skipped=1, compared=known, excerpt="E assert 1 == 2")
    assert render_report(CheckReport(tree="t", checks=(one,), left=("'x' was not run: y.",))).splitlines() == [
        "pytest: NEW FAILURES (3 passed, 2 failed, 1 skipped).",
        "  newly fails: t.py::a",
        "  already failed before the work, and still does: t.py::b",
        "  failed before and passes now: t.py::c",
        "  flaky (failed, then passed with nothing changed): t.py::d",
        "  was there before and is not run any more: t.py::e",
        "  1 fewer tests ran than before the work. The person will see that.",
        "Not run: 'x' was not run: y.",
        "--- output of pytest",
        "E assert 1 == 2",
    ]


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (
            evolve(DONE, outcome="failed", failing=1, compared=CheckComparison(old=("a",))),
            "pytest: nothing new fails (3 passed, 1 failed).",
        ),
        (evolve(DONE, outcome="failed", passed=0, exit=2), "pytest: FAILS (exit code 2)."),
        (
            evolve(DONE, outcome="could_not_run", reason="It found no tests."),
            "pytest: could not run. It found no tests.",
        ),
        (evolve(DONE, compared=CheckComparison(), steady=False), "pytest: passes (3 passed)."),
    ],
)
def test_how_a_check_stands_is_its_first_line(one: CheckResult, line: str) -> None:
    assert render_report(CheckReport(tree="t", checks=(one,))).splitlines()[0] == line


def test_a_report_never_takes_more_than_twice_thirty_lines() -> None:
    many = tuple(
        evolve(
            DONE,
            check=f"c{n}",
            outcome="failed",
            excerpt="x\n" * 40,
            compared=CheckComparison(new=tuple(f"t{m}" for m in range(20)), old=("a",)),
        )
        for n in range(20)
    )
    lines = render_report(CheckReport(tree="t", checks=many)).splitlines()
    assert len(lines) <= MAX_LINES + 20 * 4
    assert len(render_report(CheckReport(tree="t", checks=many[:3])).splitlines()) <= 2 * MAX_LINES
    assert "t7 and 12 more" in lines[1]
