"""What is decided in the same commit because it follows anyway, and what is seen before it is a fact."""

from collections.abc import Iterator, Sequence
from typing import cast

import pytest

from greenroom.core.base.ids import AgentId, StepId, TaskId, ThreadId
from greenroom.core.ports.executor import LiveEvent
from greenroom.core.ports.model import ModelTextDelta
from greenroom.core.rules.intents import AddAgent, Intent
from greenroom.core.state.agent import AgentAdded
from greenroom.core.state.events import Event
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from greenroom.core.state.team_state import TeamState
from tests.core.sync.test_synchroniser import BY, TroubledLog, agent, writing

STEP = Step(
    step_id=StepId("ann#1"),
    agent_id=AgentId("ann"),
    thread_id=ThreadId("ann@t1"),
    task_id=TaskId("t1"),
    stage_id=None,
    subtask_id=None,
    work=Work(type="skill", executor="converse"),
    queued_at=1,
)


async def test_what_is_sure_to_follow_is_in_the_same_commit() -> None:
    def foresee(state: TeamState, events: Sequence[Event]) -> Iterator[tuple[Intent, str]]:
        if any(isinstance(event, AgentAdded) for event in events) and AgentId("bob") not in state.agents:
            yield agent("bob"), BY

    log = TroubledLog()
    async with writing(log) as sync:
        sync.predict, before = foresee, log.appends
        await sync.submit(agent("ann"), by=BY)
        assert log.appends == before + 1
        assert {AgentId("ann"), AgentId("bob")} <= set(sync.state.agents)


async def test_what_was_foreseen_badly_costs_nobody_anything() -> None:
    def refused(_: TeamState, __: Sequence[Event]) -> Iterator[tuple[Intent, str]]:
        yield agent("ann"), BY  # is there already
        yield AddAgent(agent_id=AgentId("odd"), spec=cast("AgentSpec", object())), BY
        yield agent("cy"), BY

    async with writing(TroubledLog()) as sync:
        sync.predict = refused
        assert await sync.submit(agent("ann"), by=BY) == [None]
        assert set(sync.state.agents) == {AgentId("ann"), AgentId("cy")}


@pytest.mark.req("AG-186")
async def test_whoever_watches_sees_replies_as_they_come_and_one_that_breaks_harms_nobody() -> None:
    seen: list[LiveEvent] = []

    def breaks(_: Step, __: LiveEvent) -> None:
        raise ValueError("no")

    async with writing(TroubledLog()) as sync:
        leave = sync.bus.subscribe_live(breaks)
        stop = sync.bus.subscribe_live(lambda _, event: seen.append(event))
        sync.bus.show(STEP, ModelTextDelta(text="Hi"))
        leave()
        stop()
        stop()
        sync.bus.show(STEP, ModelTextDelta(text="there"))
    assert seen == [ModelTextDelta(text="Hi")]
