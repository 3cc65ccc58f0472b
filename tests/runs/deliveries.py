"""A real worktree of a small repository, real commands in it, and the verdict on the delivered work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from immutables import Map

from greenroom.abilities.tools.run_checks import RunChecksTool
from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.app.messages.findings import render_finding
from greenroom.app.runs.workspaces import open_run_workspace
from greenroom.app.toolset.toolset import Toolset
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.checks import REPORT_KEY, Check, report_to_data
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.state.agent import AgentState
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step
from greenroom.core.state.team import Team
from greenroom.core.state.team_state import TeamState
from greenroom.runs.checker import ProjectChecks
from greenroom.runs.checkout import WorkspaceSetup, build_checkout_opener
from greenroom.runs.delivery import DeliverTool, build_facts, build_mark
from greenroom.runs.verdict import BASELINE, DELIVER, RUN_CHECKS, VERDICT_KEY, Verdict, decode_verdict
from greenroom.runs.workspace import RunFlags, RunWorkspace, WorktreeTools
from tests.adapters.git.person import Person
from tests.runs.log import Story
from tests.runs.projects import PYTEST, Shelf

RUN = TeamId("r1")
NO_SETUP = WorkspaceSetup()
NO_FILES: Mapping[str, str] = {}
APP = "def total(prices):\n    return sum(prices)\n"
TESTS = "from app import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"


class AtWork(Shelf):
    """The part of a step context that a delivery uses."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step, self.key = step, str(step.step_id)
        self.spec = AgentSpec(name="coder")
        self.state = TeamState(team=Team(team_id=RUN, name="t"))
        self.queues()
        self.agent = self

    def queues(self, *more: Step) -> None:
        """Queue work for the agent while this runs."""
        steps = (self.step, *more)
        me = AgentState(agent_id=self.step.agent_id, spec=self.spec, running=self.step.step_id)
        me = evolve(me, todo=tuple(one.step_id for one in more))
        self.state = evolve(self.state, agents=Map({me.agent_id: me}), steps=Map({one.step_id: one for one in steps}))


class Bare:
    """Commands in a folder, without a sandbox."""

    def __init__(self, copied: WorktreeTools) -> None:
        self.commands = LocalCommands(copied.folder)
        assert tuple(copied.extra_tools(self.commands, nothing_runs)) == ()

    async def close(self) -> None:
        self.commands.close()


async def nothing_runs() -> Sequence[str]:
    return ()


class Job:
    """A run in a worktree, with the steps of its log."""

    def __init__(self, place: RunWorkspace, checks: Sequence[Check], setup: WorkspaceSetup) -> None:
        self.place = place
        self.opened = build_checkout_opener(place, setup, lambda copied: cast("Toolset", Bare(copied)))
        self.checks = ProjectChecks(checks, self.opened)
        self.story, self.shelf = Story(), Shelf()
        self.stopped: Sequence[str] = ()
        self._setup = setup

    def write(self, name: str, text: str) -> None:
        path = self.place.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def want(self, wanted: RunFlags) -> None:
        """Set the person's requirements."""
        (first,) = Story().step("converse", given=wanted.data).steps
        self.story.steps.insert(0, first)

    async def begin(self) -> None:
        """Run the checks on the base."""
        report = await self.checks.run_baseline(self.shelf)
        self.story.step(BASELINE, {REPORT_KEY: report_to_data(report)})

    async def run_checks(self) -> None:
        """Let the agent run the checks, which commits first."""
        bench = self.bench(RUN_CHECKS)
        made = await self.place.worktree.commit(build_mark(bench))
        outcome = await RunChecksTool(self.checks).run(bench)
        self.story.step(RUN_CHECKS, {**(outcome.result or {}), **build_facts(made)})

    def bench(self, executor: str = DELIVER, **given: object) -> StepContext:
        """Return the step context of a step that is about to run."""
        step = self.story.step(executor, given=given).steps.pop()
        here = AtWork(evolve(step, state="running", ended_at=None))
        here.blobs = self.shelf.blobs
        return cast("StepContext", here)

    async def run(self, context: StepContext) -> Outcome:
        """Run the step that delivers."""

        async def history(_: TeamId) -> Sequence[Step]:
            return tuple(self.story.steps)

        async def quiet() -> Sequence[str]:
            return self.stopped

        tool = DeliverTool(
            self.place,
            self.checks,
            self.opened,
            history,
            stop_background=quiet,
            describe=render_finding,
            has_setup=self._setup.is_enabled,
        )
        return await tool.run(context)

    async def deliver(self, **given: object) -> tuple[Verdict, Outcome]:
        """Return the verdict on the worktree, and record it in the log."""
        outcome = await self.run(self.bench(DELIVER, **{"said": "Done.", **given}))
        result: Data = outcome.result or {}
        self.story.step(DELIVER, result)
        held = result[VERDICT_KEY]
        assert isinstance(held, Mapping)
        return decode_verdict(held), outcome


@asynccontextmanager
async def job(
    root: Path,
    *checks: Check,
    files: Mapping[str, str] = NO_FILES,
    uncommitted: Mapping[str, str] = NO_FILES,
    setup: WorkspaceSetup = NO_SETUP,
    without: bool = False,
) -> AsyncIterator[Job]:
    """Start a run in a repository with these files and checks: pytest by default, none with `without`. Run the
    baseline."""
    person = Person(root / "repo")
    for name, text in {"app.py": APP, "test_app.py": TESTS, **files}.items():
        person.write(name, text)
    person.git("init", "--quiet", "--initial-branch=main")
    person.commit_all("first")
    for name, text in uncommitted.items():
        person.write(name, text)

    async def nothing(_: TeamId) -> Sequence[Step]:
        return ()

    place = await open_run_workspace(Team(team_id=RUN, workspace=str(person.root)), nothing)
    made = Job(place, () if without else checks or (PYTEST,), setup)
    await made.begin()
    yield made
