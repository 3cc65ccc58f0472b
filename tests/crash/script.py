"""A life that runs a script with everything that may outlive it, and what becomes of its step in the next life."""

from __future__ import annotations

import asyncio
from pathlib import Path

from greenroom.abilities.tools.commands import command_tools
from greenroom.adapters.processes.plain import PlainCommands
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.kit import Kit
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Abilities
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from tests.conformance.running import TOKEN, daemon, with_daemon

ANN, T1 = AgentId("ann"), TaskId("t1")


async def _runtime(home: Path) -> tuple[Runtime, PlainCommands]:
    commands = PlainCommands(home)

    async def closing() -> None:
        commands.close()

    kit = Kit(abilities=Abilities(command_tools(commands)), closing=closing)
    return Runtime(await SqliteLog.open(home), kits={"": lambda _: kit}), commands


def script(home: Path, token: str) -> str:
    """It says that it ran, leaves a daemon and a session behind, does not end when told to, and says that it is up."""
    return with_daemon(
        f"export {TOKEN}={token}; echo ran >> ran; {daemon(home / 'daemon')}; setsid sleep 600 & "
        "trap '' TERM; touch up; while true; do sleep 0.05; done"
    )


async def _run(home: Path, token: str) -> None:
    runtime, _ = await _runtime(home)
    task = AddTask(name="t", intention="t", manager=ANN, driver="manager")
    team = await runtime.create("t", [(ANN, AgentSpec(name="ann", manager=True))], begin=(task,))
    await runtime.start(team)
    work = Work(type="tool", executor="execute_script", instruction_content={"script": script(home, token)})
    await runtime.ask(team, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))
    await asyncio.sleep(600)


def script_life(home: str, token: str) -> None:
    """Run the script and wait to be killed."""
    asyncio.run(_run(Path(home), token))


async def next_life(home: Path) -> list[Step]:
    """The ended steps after recovery, and after everything stands still again."""
    runtime, _ = await _runtime(home)
    team = TeamId((await runtime.log.streams())[0].stream)
    await runtime.start(team)
    await asyncio.wait_for(runtime.wait(team, T1), 30)
    steps = [one async for one in runtime.archive(team, "step") if isinstance(one, Step)]
    await runtime.close()
    return steps
