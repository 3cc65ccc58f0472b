"""A real copy of a small repository, real commands in it, and what the house finds when the work there is delivered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import msgspec
from immutables import Map

from greenroom.adapters.commands.plain import PlainCommands
from greenroom.app.checks.checker import ProjectChecks
from greenroom.app.checks.folder import FolderLook
from greenroom.app.checks.planning import Plan
from greenroom.app.checks.receipts import VERDICT
from greenroom.app.hands.copied import Copied
from greenroom.app.hands.hands import Hands
from greenroom.app.jobs.delivering import NAME, Deliver
from greenroom.app.jobs.judging import Judges, judges
from greenroom.app.jobs.place import Place, opened
from greenroom.app.jobs.preparing import Setup, prepared
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.ports.checks import REPORT, Check, as_data
from greenroom.core.ports.executor import Bench
from greenroom.core.state.agent import Agent
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step
from greenroom.core.state.team import Team
from greenroom.core.state.world import World
from tests.adapters.git.person import Person
from tests.app.checks.log import Story
from tests.app.checks.projects import Shelf

RUN = TeamId("r1")
NO_SETUP = Setup()
NO_FILES: Mapping[str, str] = {}


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
    """Hands without walls: a folder, and commands in it."""

    def __init__(self, copied: Copied) -> None:
        self._commands = PlainCommands(copied.folder)
        assert tuple(copied.more(self._commands, nothing_runs)) == ()

    async def close(self) -> None:
        """End what runs."""
        self._commands.close()


def bare(copied: Copied) -> Hands:
    return cast("Hands", Bare(copied))


async def nothing_runs() -> Sequence[str]:
    return ()


class Job:
    """One in a copy; its steps are what a log would have."""

    def __init__(self, place: Place, commands: PlainCommands, plan: Plan, setup: Setup) -> None:
        self.place, self._setup, self.plan = place, setup, plan
        look = FolderLook(place.folder)
        self.checks = ProjectChecks(plan.run, commands, place.worktree.tree, look=look)
        self.story, self.shelf = Story(), Shelf()
        self.stopped: Sequence[str] = ()

    @property
    def judges(self) -> Judges:
        """Those that a kit would make."""
        return judges(self.place, self.checks, self._setup, bare)

    def writes(self, name: str, text: str) -> None:
        """A file of the copy."""
        path = self.place.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    async def begins(self) -> None:
        """The checks run on the base."""
        report = await self.checks.baseline(self.shelf)
        self.story.step("baseline", {REPORT: dict(as_data(report))})

    def tool(self, judged: Judges | None = None) -> Deliver:
        """The one that delivers."""

        async def history(_: TeamId) -> Sequence[Step]:
            return tuple(self.story.steps)

        async def quiet() -> Sequence[str]:
            return self.stopped

        by = judged or self.judges
        runs = self._setup.runs
        return Deliver(
            self.place,
            self.plan,
            history,
            judges=by,
            quiet=quiet,
            blob=self.shelf.fetch,
            prepares=runs,
        )

    def bench(self, said: str = "") -> Bench:
        """That of a step which is about to deliver."""
        step = self.story.step(NAME).steps.pop()
        work = evolve(step.work, instruction_content={"said": said})
        here = AtWork(evolve(step, work=work, state="running", ended_at=None))
        here.blobs = self.shelf.blobs
        return cast("Bench", here)

    async def delivers(self, said: str = "Done.", judged: Judges | None = None) -> Data:
        """What a delivery has in its result; the log has it from now on."""
        outcome = await self.tool(judged).run(self.bench(said))
        self.story.step(NAME, dict(outcome.result or {}))
        return outcome.result or {}


@record
class Told:
    """A verdict as the log has it."""

    state: str
    missing: list[str]
    changed: list[str]
    claims: list[str]
    remarks: list[str]
    receipts: list[dict[str, object]]


def verdict_of(result: Data) -> Told:
    """The verdict of a delivery."""
    return msgspec.convert(result[VERDICT], Told)


@asynccontextmanager
async def job(
    root: Path, line: str, files: Mapping[str, str] = NO_FILES, *, setup: Setup = NO_SETUP, found: bool = False
) -> AsyncIterator[Job]:
    """A job in a copy of a repository with these files, whose only check is this line, the person's own, or `found` in
    the project under this name; without a line there is none. It was prepared, if it can be, and the base was looked
    at."""
    person = Person(root / "repo")
    for name, text in {"app.py": "good\n", **files}.items():
        person.write(name, text)
    person.git("init", "--quiet", "--initial-branch=main")
    person.commit_all("first")

    async def nothing(_: TeamId) -> Sequence[Step]:
        return ()

    place = await opened(Team(team_id=RUN, workspace=str(person.root)), nothing)
    commands = PlainCommands(place.folder)
    try:
        check = Check(name=line if found else "quick", line=line, kind="test", why="w.", own=not found)
        made = Job(place, commands, Plan(run=(check,) if line else ()), setup)
        if setup.runs:
            await prepared(setup, commands, Shelf())
        if line:
            await made.begins()
        yield made
    finally:
        commands.close()
