"""A process that runs a script with children that may outlive it, and the state of its step after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

from greenroom.abilities.tools.commands import build_command_tools
from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from tests.conformance.running import TOKEN, daemon, with_daemon

ANN, T1 = AgentId("ann"), TaskId("t1")


async def _runtime(home: Path) -> tuple[Runtime, LocalCommands]:
    commands = LocalCommands(home)

    async def closing() -> None:
        commands.close()

    kit = Capabilities(build_command_tools(commands), on_close=closing)
    return Runtime(await SqliteLog.open(home), capability_factories={"": lambda _: kit}), commands


def script(home: Path, token: str) -> str:
    """Return a script that records its run, leaves a daemon and a session behind, ignores SIGTERM, and says that it is
    up."""
    return with_daemon(
        f"export {TOKEN}={token}; echo ran >> ran; {daemon(home / 'daemon')}; setsid sleep 600 & "
        "trap '' TERM; touch up; while true; do sleep 0.05; done"
    )


async def _run(home: Path, token: str) -> None:
    runtime, _ = await _runtime(home)
    task = AddTask(name="t", intention="t", manager=ANN, driver="manager")
    team = await runtime.create("t", [(ANN, AgentSpec(name="ann", manager=True))], first_intents=(task,))
    await runtime.start(team)
    work = Work(type="tool", executor="execute_script", instruction_content={"script": script(home, token)})
    await runtime.ask(team, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))
    await asyncio.sleep(600)


def script_life(home: str, token: str) -> None:
    """Run the script and wait to be killed."""
    asyncio.run(_run(Path(home), token))


async def next_life(home: Path) -> list[Step]:
    """Return the ended steps after recovery, once the team is idle."""
    runtime, _ = await _runtime(home)
    team = TeamId((await runtime.log.streams())[0].stream)
    await runtime.start(team)
    await asyncio.wait_for(runtime.wait(team, T1), 30)
    steps = [one async for one in runtime.archive(team, "step") if isinstance(one, Step)]
    await runtime.close()
    return steps
