"""Waiting ends when a task is over, or stands still for want of something from outside."""

from __future__ import annotations

import asyncio
from pathlib import Path

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import TaskId
from greenroom.core.rules.intents import AddTask, PauseTeam, QueueSteps, ResumeTeam
from greenroom.core.state.step import Work
from greenroom.testing.demo import AGENTS, DEMO_KIT, TASK, make_demo_factories
from greenroom.testing.harness import LEAD, harness
from tests.app.team import ANN, Held, spec

T1, T2 = TaskId("t1"), TaskId("t2")
PATIENCE = 20.0


async def test_work_for_another_task_is_no_reason_to_wait_on() -> None:
    first, second = Held("first"), Held("second")
    async with harness([spec("ann", "first", "second")], [], executors=[first, second]) as house:
        for task, tool in ((T1, "first"), (T2, "second")):
            plan = AddTask(name="t", intention="t", manager=LEAD, group=(ANN,), driver="manager")
            work = Work(type="tool", executor=tool, instruction_content={})
            await house.runtime.ask(house.team, plan)
            await house.runtime.ask(house.team, QueueSteps(agent_id=ANN, works=(work,), task_id=task))
        waiting = asyncio.create_task(house.runtime.wait(house.team, T1))
        await asyncio.wait_for(first.begun.wait(), PATIENCE)
        first.let_go.set()
        await asyncio.wait_for(second.begun.wait(), PATIENCE)
        assert (await asyncio.wait_for(waiting, PATIENCE)).state == "idle"
        second.let_go.set()


async def test_waiting_ends_for_every_way_a_task_can_come_to_stand_still(tmp_path: Path) -> None:
    runtime = Runtime(MemoryLog(), capability_factories=make_demo_factories(tmp_path))
    team = await runtime.create("demo", AGENTS, capabilities_name=DEMO_KIT)
    await runtime.start(team)
    await runtime.ask(team, TASK)
    waiting = asyncio.create_task(runtime.wait(team, T1))
    await runtime.ask(team, PauseTeam(now=True))
    assert (await asyncio.wait_for(waiting, PATIENCE)).state == "paused"
    await runtime.ask(team, ResumeTeam())
    assert (await asyncio.wait_for(runtime.wait(team, T1), PATIENCE)).state == "finished"
    await runtime.close()
