"""The organisation of MAS, on the running house: one writer, live agents, actors, messages that arrive."""

from __future__ import annotations

import asyncio

import pytest

from greenroom.app.organisation.inbox import read_states
from greenroom.core.base.errors import RefusedError
from greenroom.core.base.ids import AgentId, StageId, StepId, TaskId
from greenroom.core.rules.intents import (
    AddTask,
    ModifyStep,
    QueueSteps,
    RemoveStep,
    SendMessage,
)
from greenroom.core.state.message import MessageSent
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepEnded, StepQueued, StepStarted, Work
from greenroom.testing.harness import LEAD, Harness, harness
from greenroom.testing.tools import CountWords
from tests.app.team import ANN, BOB, Held, call, says, spec, stage

T1 = TaskId("t1")


def count(text: str) -> Work:
    """A step that counts words."""
    return Work(type="tool", executor="count_words", instruction_content={"text": text})


@pytest.mark.req("MAS-32")
async def test_nobody_works_who_was_not_made_by_the_house() -> None:
    async with harness([], [], executors=[CountWords()]) as house:
        await house.runtime.ask(house.team, AddTask(name="t", intention="t", manager=LEAD, driver="manager"))
        with pytest.raises(RefusedError, match="no open agent 'ghost'"):
            await house.runtime.ask(house.team, QueueSteps(agent_id=AgentId("ghost"), works=(count("a"),), task_id=T1))


@pytest.mark.req("MAS-220", "MAS-221")
async def test_an_actor_takes_steps_in_order_whatever_their_stage_and_hands_each_outcome_in() -> None:
    people = [spec("ann", "count_words"), AgentSpec(name="bob", kind="human")]
    async with harness(people, [], executors=[CountWords()]) as house:
        task = AddTask(name="t", intention="t", manager=LEAD, group=(ANN,), stages=(stage("bob"),), driver="manager")
        await house.runtime.ask(house.team, task)
        unknown = Work(type="tool", executor="no_such_tool", instruction_content={})
        works = [(count("a"), None), (count("a b"), "t1.s1"), (count("a b c"), None), (unknown, "t1.s1")]
        queued = [
            QueueSteps(agent_id=ANN, works=(work,), task_id=T1, stage_id=StageId(where) if where else None)
            for work, where in works
        ]
        await house.runtime.ask(house.team, *queued)
        await house.runtime.wait(house.team, T1)
        steps = [one for one in await house.read_archive("step") if isinstance(one, Step) and one.agent_id == ANN]
        assert [(one.stage_id, one.state, one.result) for one in steps[:3]] == [
            (None, "finished", {"output": 1}),
            ("t1.s1", "finished", {"output": 2}),
            (None, "finished", {"output": 3}),
        ]
        assert (steps[3].state, steps[3].error) == ("failed", "There is no tool called 'no_such_tool' in this team.")


@pytest.mark.req("MAS-28", "MAS-156")
async def test_a_message_of_a_finished_step_is_with_its_receiver_in_the_same_commit() -> None:
    cues = [
        says("ann", 1, call("send_message", receiver=["bob"], message="hello"), call("finish", summary="said")),
        says("bob", None, text="read"),
    ]
    async with harness([spec("ann"), spec("bob")], cues) as house:
        commits: list[list[type]] = []
        host = await house.runtime.start(house.team)
        host.listen(lambda commit: commits.append([type(event) for event in commit.events]))
        task = AddTask(name="t", intention="t", manager=LEAD, group=(BOB,), stages=(stage("ann"),))
        await house.runtime.ask(house.team, task)
        await house.runtime.wait(house.team, T1)
        (sending,) = [types for types in commits if StepEnded in types and MessageSent in types and StepQueued in types]
        assert sending.index(StepEnded) < sending.index(MessageSent) < sending.index(StepQueued)


@pytest.mark.req("MAS-93", "MAS-219")
async def test_what_arrives_while_a_step_runs_waits_behind_it() -> None:
    tool = Held()
    async with harness([spec("ann", "held")], [says("ann", None, text="read")], executors=[tool]) as house:
        task = AddTask(name="t", intention="t", manager=LEAD, group=(ANN,), driver="manager")
        await house.runtime.ask(house.team, task)
        held = Work(type="tool", executor="held", instruction_content={})
        await house.runtime.ask(house.team, QueueSteps(agent_id=ANN, works=(held,), task_id=T1))
        await asyncio.wait_for(tool.begun.wait(), 10)
        message = SendMessage(task_id=T1, receiver=(ANN,), message="are you there?", sender=LEAD)
        await house.runtime.ask(house.team, message)
        state = await house.state()
        assert state.agents[ANN].running == "ann#1"
        assert state.agents[ANN].todo == ("ann#2",)
        tool.let_go.set()
        await house.runtime.wait(house.team, T1)
        order = [event.step_id for event in await house.events() if isinstance(event, StepStarted)]
        assert order == ["ann#1", "ann#2"]


@pytest.mark.req("MAS-91")
async def test_steps_are_added_put_first_changed_removed_found_by_where_they_belong_and_followed() -> None:
    tool, people = Held(), [spec("ann", "held", "count_words"), AgentSpec(name="bob", kind="human")]
    async with harness(people, [], executors=[tool, CountWords()]) as house:
        task = AddTask(name="t", intention="t", manager=LEAD, group=(ANN,), stages=(stage("bob"),), driver="manager")
        held = Work(type="tool", executor="held", instruction_content={})
        await house.runtime.ask(house.team, task, QueueSteps(agent_id=ANN, works=(held,), task_id=T1))
        await asyncio.wait_for(tool.begun.wait(), 10)
        await house.runtime.ask(
            house.team,
            QueueSteps(agent_id=ANN, works=(count("a"), count("a b")), task_id=T1),
            QueueSteps(agent_id=ANN, works=(count("a b c"),), task_id=T1, stage_id=StageId("t1.s1"), place="next"),
            ModifyStep(step_id=StepId("ann#3"), work=count("a b c d")),
            RemoveStep(step_id=StepId("ann#2")),
        )
        assert await _found(house) == {
            "ann#1": ("no_relative", "running"),
            "ann#2": ("no_relative", "skipped"),
            "ann#3": ("no_relative", "init"),
            "ann#4": ("t1.s1", "init"),
        }
        tool.let_go.set()
        await house.runtime.wait(house.team, T1)
        assert set((await _found(house)).values()) == {
            ("no_relative", "finished"),
            ("t1.s1", "finished"),
            ("no_relative", "skipped"),
        }
        ran = [one for one in await house.read_archive("step") if isinstance(one, Step) and one.state == "finished"]
        assert [(one.step_id, one.result) for one in ran[1:]] == [("ann#4", {"output": 3}), ("ann#3", {"output": 4})]


async def _found(house: Harness) -> dict[str, tuple[object, object]]:
    """The stage and the state of every step of the task, by its id."""
    steps = await read_states(house.runtime, house.team, "step")
    return {name: (one["stage_id"], one["execution_state"]) for name, one in steps.items() if one["task_id"] == T1}
