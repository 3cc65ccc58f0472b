"""A process that runs a command, and what can be read about it from outside."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from tests.run_command import RunCommand

ANN = AgentId("ann")
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


async def runtime_on(home: Path) -> Runtime:
    """Return a runtime that can run commands."""
    return Runtime(
        await SqliteLog.open(home),
        capability_factories={"": lambda _: Capabilities([RunCommand()])},
    )


async def _run_a_command(home: Path) -> None:
    runtime = await runtime_on(home)
    team = await runtime.create("t", [(ANN, AgentSpec(name="ann", tools=("run_command",), manager=True))])
    await runtime.start(team)
    await runtime.ask(team, AddTask(name="t", intention="t", manager=ANN, driver="manager"))
    work = Work(type="tool", executor="run_command", instruction_content={"command": SLEEP})
    await runtime.ask(team, QueueSteps(agent_id=ANN, works=(work,), task_id=TaskId("t1")))
    await asyncio.sleep(600)


def first_life(home: str) -> None:
    """Start a command and wait to be killed."""
    asyncio.run(_run_a_command(Path(home)))


async def command_of(home: Path) -> tuple[TeamId, int]:
    """Return the team and the process group that its step has announced, or 0."""
    log = await SqliteLog.open(home)
    try:
        teams = await log.streams()
        if not teams:
            return TeamId(""), 0
        state = await Runtime(log).state(TeamId(teams[0].stream))
        groups = [int(one.key) for step in state.steps.values() for one in step.prepared]
        return TeamId(teams[0].stream), groups[0] if groups else 0
    finally:
        await log.close()


async def recovered(home: Path, team: TeamId) -> str:
    """Return the state of the step after recovery."""
    runtime = await runtime_on(home)
    await runtime.start(team)
    steps = [one async for one in runtime.archive(team, "step") if isinstance(one, Step)]
    await runtime.close()
    return steps[0].state
