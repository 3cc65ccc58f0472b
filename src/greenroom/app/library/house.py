"""`Greenroom`: where agents work. A folder with a log in it, or only memory; the models that can be asked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.library.blueprint import Blueprint
from greenroom.app.library.crew import kit_of, members
from greenroom.app.library.events import EventBus
from greenroom.app.library.results import Heard, Result, T
from greenroom.app.library.runs import FIRST, Approve, Run
from greenroom.app.provisions import Provisions
from greenroom.app.runtime import Runtime
from greenroom.app.settings.home import VARIABLE, home_folder
from greenroom.app.settings.sharing import tell_git
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.ports.model import Models
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.step import Work

KIT: Final = "library"
FOLDER: Final = ".greenroom"
S = TypeVar("S")


class Greenroom:
    """`async with Greenroom() as house:` keeps all in `.greenroom/` here; `Greenroom(memory=True)` forgets it all.

    `max_cost` (dollars), `max_tokens` and `max_time` (seconds of work) bound each run; without them the settings say.
    `models` are asked instead of those of the settings, and have no limits but those in `limits`.
    `events` are callbacks by name, around all that is done here.
    """

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        memory: bool = False,
        models: Models | None = None,
        limits: Limits | None = None,
        max_cost: float | None = None,
        max_tokens: int | None = None,
        max_time: float | None = None,
    ) -> None:
        if memory and home is not None:
            raise WorldFault("A house is either in memory or in a folder. Give one of `memory` and `home`.")
        named = Path(home) if home is not None else None
        self.home = None if memory else home_folder(named or _here())
        self._given = models
        self._bounds = limits
        self._provisions = Provisions()
        flags = {"limits.cost": max_cost, "limits.tokens": max_tokens, "limits.time": max_time}
        self._provisions.give({name: value for name, value in flags.items() if value is not None})
        self.events = EventBus()
        self._runtime: Runtime | None = None
        self._agents: dict[TeamId, Blueprint[Any]] = {}

    async def __aenter__(self) -> Self:
        kits = {KIT: lambda team: kit_of(self._agent(team.team_id), self.models)}
        if self.home is None:
            self._runtime = Runtime(MemoryLog(), kits=kits)
        else:
            self._runtime = await Runtime.open(self.home, kits=kits)
            if self.home.name == FOLDER:
                tell_git(self.home)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        runtime, self._runtime = self._runtime, None
        try:
            if runtime is not None:
                await runtime.close()
        finally:
            await self._provisions.close()

    @property
    def runtime(self) -> Runtime:
        """The facade below: all teams, their events and their archive."""
        if self._runtime is None:
            raise WorldFault("The house is not open. Use it in `async with Greenroom() as house:`.")
        return self._runtime

    @property
    def models(self) -> Models:
        """Who is asked."""
        return self._given or self._provisions

    async def run(self, agent: Blueprint[T], text: str, *, approve: Approve | None = None) -> Result[T]:
        """Give an agent something to do and wait for the result."""
        async with self.start(agent, text, approve=approve) as run:
            return await run.result()

    async def stream(
        self, agent: Blueprint[T], text: str, *, approve: Approve | None = None
    ) -> AsyncIterator[Heard[T]]:
        """The same, told as it happens; the result comes last."""
        async with self.start(agent, text, approve=approve) as run:
            async for heard in run.heard():
                yield heard

    @asynccontextmanager
    async def start(self, agent: Blueprint[T], text: str, *, approve: Approve | None = None) -> AsyncIterator[Run[T]]:
        """A run that has begun. Leaving it stops it; it can be gone on with by `resume`."""
        if not text.strip():
            raise WorldFault("There is nothing to do: the text is empty.")
        team = await self._found(agent, text)
        async with self._followed(agent, team, approve) as run:
            yield run

    async def resume(self, agent: Blueprint[T], run: str, *, approve: Approve | None = None) -> Result[T]:
        """Go on with a run that was cut off, where it was; the agent is the one it was begun with."""
        team = TeamId(run)
        world = await self.runtime.world(team)
        if world.team.kit != KIT or AgentId(agent.name) not in world.agents:
            raise WorldFault(f"{run!r} is no run of the agent {agent.name!r}.")
        async with self._followed(agent, team, approve) as again:
            return await again.result()

    @asynccontextmanager
    async def _followed(self, agent: Blueprint[T], team: TeamId, approve: Approve | None) -> AsyncIterator[Run[T]]:
        self._agents[team] = agent
        run = Run(self.runtime, agent, team, approve, self.events)
        try:
            await run.begin()
            yield run
        finally:
            await run.close()
            del self._agents[team]

    async def _found(self, agent: Blueprint[T], text: str) -> TeamId:
        if self._given is None:
            await self._provisions.look_around()
        everybody = members(agent)
        name = AgentId(agent.name)
        group = tuple(one for one, _ in everybody)
        task = AddTask(name=" ".join(text.split())[:60], intention=text, manager=name, group=group)
        work = Work(type="skill", executor="converse", intention="Do it.", text_content=text)
        queued = QueueSteps(agent_id=name, works=(work,), task_id=FIRST)
        return await self.runtime.create(agent.name, everybody, kit=KIT, limits=self._limits(), begin=(task, queued))

    def _limits(self) -> Limits:
        if self._bounds is not None or self._given is not None:
            return self._bounds or Limits()
        return self._provisions.loaded.settings.limits.limits

    def _agent(self, team: TeamId) -> Blueprint[Any]:
        found = self._agents.get(team)
        if found is None:
            raise WorldFault(f"The run {team!r} belongs to a program. Go on with it there: `house.resume(agent, …)`.")
        return found


def _here() -> Path:
    """Where a program keeps its runs: the folder that is named for all, else one in the current folder."""
    return Path(os.environ.get(VARIABLE) or FOLDER)


@asynccontextmanager
async def at_once(house: Greenroom | None) -> AsyncIterator[Greenroom]:
    """The house that is given, which stays open, or one for this once."""
    if house is not None:
        yield house
        return
    async with Greenroom() as here:
        yield here


def synchronously(work: Coroutine[Any, Any, S]) -> S:
    """Run it to its end; beside a loop that runs already (a notebook's) in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="greenroom-run") as aside:
        return aside.submit(asyncio.run, work).result()
