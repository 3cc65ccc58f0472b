"""A real worktree of a small repository, real commands in it, and the verdict when the work there is delivered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from immutables import Map

from greenroom.abilities.tools.run_checks import RunChecks
from greenroom.adapters.processes.plain import PlainCommands
from greenroom.app.messages.findings import sentence
from greenroom.app.runs.workspaces import opened
from greenroom.app.toolset.toolset import Hands
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.checks import REPORT, Check, as_data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.state.agent import Agent
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step
from greenroom.core.state.team import Team
from greenroom.core.state.world import World
from greenroom.runs.checker import ProjectChecks
from greenroom.runs.checkout import Setup, checkouts
from greenroom.runs.delivery import Deliver, facts, mark
from greenroom.runs.verdict import BASELINE, DELIVER, RUN_CHECKS, VERDICT, Verdict, from_kept
from greenroom.runs.workspace import Copied, Place, Wanted
from tests.adapters.git.person import Person
from tests.runs.log import Story
from tests.runs.projects import PYTEST, Shelf

RUN = TeamId("r1")
NO_SETUP = Setup()
NO_FILES: Mapping[str, str] = {}
APP = "def total(prices):\n    return sum(prices)\n"
TESTS = "from app import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"


class AtWork(Shelf):
    """As much of a bench as a delivery looks at."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step, self.key = step, str(step.step_id)
        self.spec = AgentSpec(name="coder")
        self.world = World(team=Team(team_id=RUN, name="t"))
        self.queues()
        self.agent = self

    def queues(self, *more: Step) -> None:
        """What waits for the agent while this runs."""
        steps = (self.step, *more)
        me = Agent(agent_id=self.step.agent_id, spec=self.spec, running=self.step.step_id)
        me = evolve(me, todo=tuple(one.step_id for one in more))
        self.world = evolve(self.world, agents=Map({me.agent_id: me}), steps=Map({one.step_id: one for one in steps}))


class Bare:
    """Commands in a folder, without a sandbox."""

    def __init__(self, copied: Copied) -> None:
        self.commands = PlainCommands(copied.folder)
        assert tuple(copied.more(self.commands, nothing_runs)) == ()

    async def close(self) -> None:
        """End what runs."""
        self.commands.close()


def bare(copied: Copied) -> Hands:
    return cast("Hands", Bare(copied))


async def nothing_runs() -> Sequence[str]:
    return ()


class Job:
    """A run in a worktree; its steps are what a log would have."""

    def __init__(self, place: Place, checks: Sequence[Check], setup: Setup) -> None:
        self.place = place
        self.opened = checkouts(place, setup, bare)
        self.checks = ProjectChecks(checks, self.opened)
        self.story, self.shelf = Story(), Shelf()
        self.stopped: Sequence[str] = ()
        self._setup = setup

    def write(self, name: str, text: str) -> None:
        """Write a file of the worktree."""
        path = self.place.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def want(self, wanted: Wanted) -> None:
        """What the person said beforehand."""
        (first,) = Story().step("converse", given=wanted.data).steps
        self.story.steps.insert(0, first)

    async def begin(self) -> None:
        """Run the checks on the base."""
        report = await self.checks.baseline(self.shelf)
        self.story.step(BASELINE, {REPORT: as_data(report)})

    async def run_checks(self) -> None:
        """The agent runs them, which commits first."""
        bench = self.bench(RUN_CHECKS)
        made = await self.place.worktree.commit(mark(bench))
        outcome = await RunChecks(self.checks).run(bench)
        self.story.step(RUN_CHECKS, {**(outcome.result or {}), **facts(made)})

    def bench(self, executor: str = DELIVER, **given: object) -> Bench:
        """That of a step which is about to run."""
        step = self.story.step(executor, given=given).steps.pop()
        here = AtWork(evolve(step, state="running", ended_at=None))
        here.blobs = self.shelf.blobs
        return cast("Bench", here)

    async def run(self, bench: Bench) -> Outcome:
        """Run the step that delivers."""

        async def history(_: TeamId) -> Sequence[Step]:
            return tuple(self.story.steps)

        async def quiet() -> Sequence[str]:
            return self.stopped

        tool = Deliver(
            self.place,
            self.checks,
            self.opened,
            history,
            quiet=quiet,
            describe=sentence,
            prepares=self._setup.runs,
        )
        return await tool.run(bench)

    async def deliver(self, **given: object) -> tuple[Verdict, Outcome]:
        """The verdict on what lies in the worktree; the log has it from now on."""
        outcome = await self.run(self.bench(DELIVER, **{"said": "Done.", **given}))
        result: Data = outcome.result or {}
        self.story.step(DELIVER, result)
        held = result[VERDICT]
        assert isinstance(held, Mapping)
        return from_kept(held), outcome


@asynccontextmanager
async def job(
    root: Path,
    *checks: Check,
    files: Mapping[str, str] = NO_FILES,
    uncommitted: Mapping[str, str] = NO_FILES,
    setup: Setup = NO_SETUP,
    without: bool = False,
) -> AsyncIterator[Job]:
    """A run in a repository with these files and checks, pytest if none is named; `without` any check. They ran on the
    base."""
    person = Person(root / "repo")
    for name, text in {"app.py": APP, "test_app.py": TESTS, **files}.items():
        person.write(name, text)
    person.git("init", "--quiet", "--initial-branch=main")
    person.commit_all("first")
    for name, text in uncommitted.items():
        person.write(name, text)

    async def nothing(_: TeamId) -> Sequence[Step]:
        return ()

    place = await opened(Team(team_id=RUN, workspace=str(person.root)), nothing)
    made = Job(place, () if without else checks or (PYTEST,), setup)
    await made.begin()
    yield made
