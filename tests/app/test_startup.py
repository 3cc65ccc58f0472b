"""MAS's start-up on the running house: messages travel before anything else, and people are heard to the end."""

from __future__ import annotations

import asyncio

import pytest

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.kit import Kit
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import AgentId, TaskId
from greenroom.core.ports.executor import Abilities
from greenroom.core.rules.intents import AddTask, QueueSteps, SendMessage
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from greenroom.testing.harness import LEAD, harness
from greenroom.testing.scripted import Cue, Reply
from tests.app.team import ANN, Held, finishes, spec, stage

T1 = TaskId("t1")
PERSON = AgentId("person")


@pytest.mark.req("MAS-34")
async def test_what_was_said_before_the_start_is_delivered_before_anything_new_happens() -> None:
    tool = Held("process_message")
    tool.type = "skill"
    tool.let_go.set()
    runtime = Runtime(MemoryLog(), kits={"": lambda _: Kit(abilities=Abilities([tool]))})
    agents = [(LEAD, AgentSpec(name="lead", manager=True)), (ANN, AgentSpec(name="ann", style="plan"))]
    team = await runtime.create("t", agents)
    await runtime.ask(
        team,
        AddTask(name="t", intention="t", manager=LEAD, group=(ANN,), driver="manager"),
        SendMessage(task_id=T1, receiver=(ANN,), message="good morning", sender=LEAD),
    )
    assert tool.runs == 0
    await runtime.start(team)
    assert (await runtime.wait(team, T1)).word == "idle"
    (step,) = [one async for one in runtime.archive(team, "step") if isinstance(one, Step)]
    assert (step.agent_id, step.state, step.work.text_content) == (ANN, "finished", "from: lead\ngood morning")
    await runtime.close()


@pytest.mark.req("MAS-38")
async def test_a_running_house_hears_people_while_it_works_and_after_its_work_is_done() -> None:
    tool = Held()
    cues = [Cue(agent="ann", thread="ann@t1", reply=Reply(text="heard")), finishes("ann")]
    person = AgentSpec(name="person", kind="human")
    async with harness([spec("ann", "held"), person], cues, executors=[tool]) as house:
        task = AddTask(name="t", intention="t", manager=LEAD, group=(ANN, PERSON), driver="manager")
        await house.runtime.ask(house.team, task)
        held = Work(type="tool", executor="held", instruction_content={})
        await house.runtime.ask(house.team, QueueSteps(agent_id=ANN, works=(held,), task_id=T1))
        await asyncio.wait_for(tool.begun.wait(), 10)
        await house.runtime.ask(house.team, SendMessage(task_id=T1, receiver=(ANN,), message="hurry", sender=PERSON))
        tool.let_go.set()
        assert (await house.runtime.wait(house.team, T1)).word == "idle"
        steps = [one for one in await house.archived("step") if isinstance(one, Step)]
        assert [one.work.text_content for one in steps] == ["", "from: person\nhurry"]
        assert (await house.do(stage("ann"))).word == "finished", "it is still there and takes the next task"
