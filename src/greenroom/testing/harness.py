"""A harness: a team in memory with a scripted model. The shortest way to test custom agents and tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from greenroom.abilities.skills.converse import Converse
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.runtime import Runtime
from greenroom.app.task_status import TaskStatus
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities, Executor
from greenroom.core.ports.log import Store
from greenroom.core.rules.intents import AddTask, StagePlan
from greenroom.core.state.archive import ArchivedRecord, ArchiveKind
from greenroom.core.state.events import Event
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team_state import TeamState
from greenroom.testing.scripted import Cue, ScriptedModel

LEAD = AgentId("lead")


@dataclass(frozen=True, slots=True)
class Harness:
    """A running team, with an agent `lead` that manages its tasks."""

    runtime: Runtime
    team: TeamId
    model: ScriptedModel

    async def do(self, *stages: StagePlan, name: str = "task") -> TaskStatus:
        """Run a task of these stages and wait until it is over or idle."""
        before = (await self.state()).team.tasks_made
        await self.runtime.ask(self.team, AddTask(name=name, intention=name, manager=LEAD, stages=stages))
        return await self.runtime.wait(self.team, TaskId(f"t{before + 1}"))

    async def state(self) -> TeamState:
        """Return the team state."""
        return await self.runtime.state(self.team)

    async def events(self) -> Sequence[Event]:
        """Return all events of the team."""
        return [logged_event.event async for logged_event in self.runtime.events(self.team)]

    async def read_archive(self, kind: ArchiveKind) -> Sequence[ArchivedRecord]:
        """Return archived records: ended steps, stages and tasks, sent messages, posted notes."""
        return [record async for record in self.runtime.archive(self.team, kind)]


@asynccontextmanager
async def harness(
    agents: Iterable[AgentSpec], cues: Iterable[Cue], *, executors: Iterable[Executor] = (), log: Store | None = None
) -> AsyncIterator[Harness]:
    """Start a team of these agents that follows a script. The names of the agents are their ids."""
    model = ScriptedModel(cues)
    kit = Capabilities([Converse(model), *executors])
    runtime = Runtime(log or MemoryLog(), capability_factories={"harness": lambda _: kit})
    members = [(LEAD, AgentSpec(name="lead", role="manager", manager=True))]
    members += [(AgentId(spec.name), spec) for spec in agents]
    try:
        team = await runtime.create("harness", members, capabilities_name="harness")
        await runtime.start(team)
        yield Harness(runtime=runtime, team=team, model=model)
    finally:
        await runtime.close()
