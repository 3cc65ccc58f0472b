"""A team of one agent whose tools the test calls: no model, the real runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities, Executor
from greenroom.core.ports.log import Store
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work

ANN, T1 = AgentId("ann"), TaskId("t1")


class Caller:
    """Calls the tools of a team, one step each."""

    def __init__(self, runtime: Runtime, team: TeamId) -> None:
        self.runtime = runtime
        self.team = team

    async def begin(self, tool: str, **arguments: object) -> None:
        """Queue a call and return immediately."""
        work = Work(type="tool", executor=tool, instruction_content=arguments)
        await self.runtime.ask(self.team, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))

    async def call(self, tool: str, **arguments: object) -> Step:
        """Call a tool and return the ended step."""
        await self.begin(tool, **arguments)
        await asyncio.wait_for(self.runtime.wait(self.team, T1), 60)
        return (await self.steps())[-1]

    async def output(self, tool: str, **arguments: object) -> str:
        """Call a tool and return the output that an agent would read."""
        step = await self.call(tool, **arguments)
        assert step.state == "finished", step.error
        return str((step.result or {})["output"])

    async def error(self, tool: str, **arguments: object) -> str:
        step = await self.call(tool, **arguments)
        assert step.state == "failed", step.result
        return step.error

    async def steps(self) -> list[Step]:
        return [one async for one in self.runtime.archive(self.team, "step") if isinstance(one, Step)]


@asynccontextmanager
async def caller(executors: Iterable[Executor], log: Store | None = None, team: str = "") -> AsyncIterator[Caller]:
    """Start a team with these executors. With a log and a team name, resume that team."""
    kit = Capabilities(executors)
    runtime = Runtime(log or MemoryLog(), capability_factories={"": lambda _: kit})
    try:
        if team:
            name = TeamId(team)
            await runtime.start(name)
        else:
            task = AddTask(name="t", intention="t", manager=ANN, driver="manager")
            name = await runtime.create("t", [(ANN, AgentSpec(name="ann", manager=True))], first_intents=(task,))
            await runtime.start(name)
        yield Caller(runtime, name)
    finally:
        await runtime.close()
