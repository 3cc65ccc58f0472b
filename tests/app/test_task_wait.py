"""Waiting costs next to nothing per commit, and gives the answers that looking at everything would give."""

from __future__ import annotations

import asyncio
from itertools import takewhile
from pathlib import Path

import pytest

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app import runtime as runtime_module
from greenroom.app.runtime import Runtime
from greenroom.app.task_status import Standing, never, reason, standing
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.rules.intents import AddTask, AnswerApproval, PauseTeam, QueueSteps, ResumeTeam, SetTimer
from greenroom.core.state.step import Work
from greenroom.core.state.world import World
from greenroom.testing.demo import AGENTS, ASKING_KIT, KIT, PERSON, TASK, demo_kits
from greenroom.testing.harness import LEAD, harness
from greenroom.testing.tools import CountWords
from tests.app.team import ANN, BOB, Held, finishes, spec, stage

T1, T2 = TaskId("t1"), TaskId("t2")
PATIENCE = 20.0


async def worlds_of_a_demo(tmp_path: Path, *, limits: Limits) -> list[World]:
    """Every committed world of a run with questions, a pause, two tasks, a timer and (with limits) an early end."""
    runtime = Runtime(MemoryLog(), kits=demo_kits(tmp_path))
    team = await runtime.create("demo", (*AGENTS, PERSON), kit=ASKING_KIT, limits=limits)
    host = await runtime.start(team)
    worlds = [host.world]
    host.listen(lambda commit: worlds.append(commit.world))
    nap = SetTimer(agent_id=AgentId("maya"), task_id=T1, name="nap", due=1, text="wake up")
    await runtime.ask(team, TASK, nap)
    await runtime.ask(team, PauseTeam())
    await runtime.ask(team, ResumeTeam())
    await runtime.ask(team, TASK)
    await settle(runtime, team)
    for approval in tuple(host.world.approvals):
        await runtime.ask(team, AnswerApproval(approval_id=approval, answer="approved"))
    await settle(runtime, team)
    await runtime.close()
    return worlds


async def settle(runtime: Runtime, team: TeamId) -> None:
    for task in (T1, T2):
        await asyncio.wait_for(runtime.wait(team, task), PATIENCE)


@pytest.mark.parametrize("steps", [None, 9])
async def test_a_reason_to_work_is_one_as_long_as_it_holds(tmp_path: Path, steps: int | None) -> None:
    worlds = await worlds_of_a_demo(tmp_path, limits=Limits(steps=steps))
    held = [
        standing(later, task)
        for task in (T1, T2)
        for place, world in enumerate(worlds)
        for later in takewhile(reason(world, task), worlds[place:])
    ]
    assert {found.word for found in held if found} == {"working"}
    assert None not in held
    assert len(held) > 50


async def test_what_works_has_a_reason_nearly_always(tmp_path: Path) -> None:
    worlds = await worlds_of_a_demo(tmp_path, limits=Limits())
    working = [world for world in worlds if (found := standing(world, T1)) is not None and found.word == "working"]
    without = [world for world in working if reason(world, T1) is never]
    assert len(without) * 4 < len(working), "only the schedule's turn has none"


async def test_who_waits_does_not_look_at_the_task_at_every_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Held()
    agents = [spec("ann", "held"), spec("bob", "count_words")]
    async with harness(agents, [finishes("ann", 1)], executors=[tool, CountWords()]) as house:
        for group in ((ANN,), (BOB,)):
            task = AddTask(name="t", intention="t", manager=LEAD, group=group, driver="manager")
            await house.runtime.ask(house.team, task)
        held = Work(type="tool", executor="held", instruction_content={})
        await house.runtime.ask(house.team, QueueSteps(agent_id=ANN, works=(held,), task_id=T1))
        await asyncio.wait_for(tool.begun.wait(), PATIENCE)
        looks: list[TaskId] = []

        def counted(world: World, task: TaskId) -> Standing | None:
            looks.append(task)
            return standing(world, task)

        monkeypatch.setattr(runtime_module, "standing", counted)
        waiting = asyncio.create_task(house.runtime.wait(house.team, T1))
        before = (await house.runtime.log.head(house.team)).version
        count = Work(type="tool", executor="count_words", instruction_content={"text": "a b"})
        for _ in range(50):
            await house.runtime.ask(house.team, QueueSteps(agent_id=BOB, works=(count,), task_id=T2))
        assert (await asyncio.wait_for(house.runtime.wait(house.team, T2), PATIENCE)).word == "idle"
        assert (await house.runtime.log.head(house.team)).version - before > 150
        assert looks.count(T1) == 1, "as long as ann works, nothing else matters"
        tool.let_go.set()
        assert (await asyncio.wait_for(waiting, PATIENCE)).word == "idle"


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
        assert (await asyncio.wait_for(waiting, PATIENCE)).word == "idle"
        second.let_go.set()


async def test_waiting_ends_for_every_way_a_task_can_come_to_stand_still(tmp_path: Path) -> None:
    runtime = Runtime(MemoryLog(), kits=demo_kits(tmp_path))
    team = await runtime.create("demo", AGENTS, kit=KIT)
    await runtime.start(team)
    await runtime.ask(team, TASK)
    waiting = asyncio.create_task(runtime.wait(team, T1))
    await runtime.ask(team, PauseTeam(now=True))
    assert (await asyncio.wait_for(waiting, PATIENCE)).word == "paused"
    await runtime.ask(team, ResumeTeam())
    assert (await asyncio.wait_for(runtime.wait(team, T1), PATIENCE)).word == "finished"
    await runtime.close()


async def test_a_stage_of_many_is_waited_for_to_its_end() -> None:
    names = [f"a{number}" for number in range(30)]
    async with harness([spec(name) for name in names], [finishes(name) for name in names]) as house:
        assert (await asyncio.wait_for(house.do(stage(*names)), PATIENCE)).word == "finished"
