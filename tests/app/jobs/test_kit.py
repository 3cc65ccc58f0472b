"""The kit of a job: what is lent to its copy, and what it knows of the beginning, whatever has happened since."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from greenroom.abilities.tools.propose_plan import Guess
from greenroom.adapters.commands.plain import PlainCommands
from greenroom.app.jobs.checkout import Setup
from greenroom.app.jobs.kit import Supplies, job_kit
from greenroom.app.jobs.place import workspace
from greenroom.app.jobs.plan import Plan, plan_of
from greenroom.app.jobs.verdict import BASELINE
from greenroom.app.kit import Kit
from greenroom.app.toolset.toolbox import Copied
from greenroom.app.toolset.toolset import Hands
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check
from greenroom.core.ports.executor import Bench
from greenroom.core.ports.model import Models
from greenroom.core.ports.workspace import SCRATCH
from greenroom.core.state.step import Step
from greenroom.core.state.team import Team
from tests.adapters.git.person import Person
from tests.app.jobs.deliveries import RUN, AtWork, nothing_runs
from tests.app.jobs.log import Story
from tests.app.jobs.projects import Shelf
from tests.conformance.workspace_case import is_there


class Tools:
    """Hands with the tools that a job has more than others, and no walls."""

    def __init__(self, copied: Copied) -> None:
        self.commands = PlainCommands(copied.folder)
        self.executors = tuple(map(copied.wrap, copied.more(self.commands, nothing_runs)))
        self.specs = ()

    async def close(self) -> None:
        """End what runs."""
        self.commands.close()


class Desk:
    """A person whose check is a recipe, a log, and the plans that were made."""

    def __init__(self, tmp_path: Path) -> None:
        self.person, self.story, self.plans = Person(tmp_path / "repo"), Story(), list[Plan]()
        self._shelf = Shelf()
        self.person.root.mkdir()
        self.person.git("init", "--quiet", "--initial-branch=main")
        self.recipe("grep -q good app.txt")
        self.person.write("app.txt", "good\n")
        self.person.commit_all("first")

    def recipe(self, line: str) -> None:
        """What `make check` does."""
        self.person.write("Makefile", f"check:\n\t@{line}\n")

    def _plan(self, root: Path, then: Sequence[Check] | None) -> Plan:
        self.plans.append(plan_of(root, walls=True, then=then))
        return self.plans[-1]

    async def _history(self, _: TeamId) -> Sequence[Step]:
        return tuple(self.story.steps)

    async def _blob(self, _: TeamId, name: str) -> bytes:
        return await self._shelf.fetch(name)

    @asynccontextmanager
    async def kit(self) -> AsyncIterator[Kit]:
        """Made as when the team is to run."""
        supplies = Supplies(
            models=cast("Models", None),
            notes=lambda: "",
            hands=lambda copied: cast("Hands", Tools(copied)),
            plan=self._plan,
            setup=lambda _: Setup(),
            history=self._history,
            blob=self._blob,
            guess=cast("Guess", None),
            alone=lambda: True,
            non_interactive=lambda: True,
            says_yes=lambda: False,
            patience=lambda: None,
        )
        made = await job_kit(supplies)(Team(team_id=RUN, workspace=str(self.person.root)))
        try:
            yield made
        finally:
            assert made.closing is not None
            await made.closing()

    async def goes_on(self) -> None:
        """A life in which nothing is done."""
        async with self.kit():
            pass

    async def begins(self) -> None:
        """The first step of the job, in a life that ends with it."""
        async with self.kit() as kit:
            first = kit.abilities.get("tool", BASELINE)
            assert first is not None
            step = self.story.step(BASELINE).steps.pop()
            here = AtWork(step)
            here.blobs = self._shelf.blobs
            outcome = await first.run(cast("Bench", here))
            self.story.steps.append(evolve(step, result=outcome.result))


@pytest.fixture(name="desk")
def _desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return Desk(tmp_path)


async def test_what_a_check_was_when_the_job_began_judges_it_whatever_its_person_has_made_of_it_since(
    desk: Desk,
) -> None:
    await desk.begins()
    desk.recipe("true")
    await desk.goes_on()
    then, now = ([one.digest for one in plan.run] for plan in desk.plans)
    assert (len(then), then) == (1, now)
    desk.story.steps.clear()
    await desk.goes_on()
    assert [one.digest for one in desk.plans[-1].run] != then, "without a log nobody knows what it was"


async def test_a_fresh_copy_that_a_killed_life_has_left_is_taken_away(desk: Desk) -> None:
    theirs = await workspace(desk.person.root)
    left = await theirs.open(RUN, SCRATCH, (await theirs.snapshot(RUN)).commit)
    assert is_there(left.folder)
    await desk.goes_on()
    assert not is_there(left.folder)
