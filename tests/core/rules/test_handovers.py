"""Hand-overs of a whole task: who may pass it on, to whom, and when it ends instead."""

from __future__ import annotations

from typing import Final, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.rules.handovers import is_ping_pong, make_hop
from greenroom.core.state.agent import AgentAdded
from greenroom.core.state.spec import AgentSpec, Handoff
from greenroom.core.state.task import HOPS_KEPT, Hop, Routing, TaskEnded, TaskHandedOver
from greenroom.core.state.thread import WindowMoved
from tests.core.house import BOSS, House, skill, thread, tool

LEAD, COD, TED = AgentId("lead"), AgentId("cod"), AgentId("ted")
E = TypeVar("E")
T1: Final = TaskId("t1")
SPECS = tuple(AgentSpec(name=name, tools=("shell",), handoff=Handoff()) for name in (LEAD, COD, TED))


def routed(max_hops: int = 20) -> House:
    """Build a team whose lead has a task."""
    house = House()
    house.do(i.CreateTeam(team_id=TeamId("team"), name="Team"), i.AddAgent(agent_id=LEAD, spec=SPECS[0]))
    routing = Routing(main=LEAD, members=SPECS, max_hops=max_hops)
    house.do(i.AddTask(name="job", intention="do it", manager=LEAD, routing=routing))
    return house.queue(LEAD, task=T1)


def seen(house: House, kind: type[E]) -> list[E]:
    """Return all events of a kind since the beginning."""
    return [event for event in house.log if isinstance(event, kind)]


def over(to: AgentId, text: str = "go on", **more: object) -> i.SendMessage:
    message = i.SendMessage(task_id=T1, receiver=(to,), message=text, delivery="handoff", kind="handoff")
    return evolve(message, **more)


@pytest.mark.req("MA-31", "MA-32", "MA-48")
def test_the_task_moves_and_the_receiver_joins_once() -> None:
    house = routed().run(LEAD, over(COD, handoff_summary="half"))
    assert (house.state.tasks[T1].manager, house.state.tasks[T1].group) == (COD, (LEAD, COD))
    assert house.last(COD).work.text_content == "from: lead\nsummary_of_sender_work: half\ncontent:\ngo on"
    house.run(COD, over(LEAD, "done")).run(LEAD, over(COD, "more"))
    assert [event.agent_id for event in seen(house, TaskHandedOver)] == [COD, LEAD, COD]
    assert len([event for event in seen(house, AgentAdded) if event.agent_id == COD]) == 1
    assert house.last(COD).thread_id == thread(COD, "t1")
    assert house.state.tasks[T1].hops_made == 3


def test_a_hand_over_to_anyone_but_one_other_member_is_refused() -> None:
    house = routed().run(LEAD, over(AgentId("zoe")), over(LEAD), over(COD, receiver=(COD, TED)), over(COD, message=" "))
    assert house.codes() == ["bad_handoff", "bad_handoff", "bad_handoff", "empty_message"]
    assert COD not in house.state.agents, "nothing is left of a refused hand-over"


def test_only_the_agent_that_has_the_task_passes_it_on() -> None:
    house = routed().run(LEAD, over(COD), over(TED))
    assert house.codes() == ["not_in_control"]


def test_who_was_told_more_reads_it_first() -> None:
    house = routed()
    house.start(LEAD)
    house.queue(LEAD, skill(text="And quickly."), task=T1)
    house.finish(LEAD, over(COD))
    assert house.codes() == ["not_yet"]
    assert house.state.tasks[T1].manager == LEAD


def test_an_agent_that_has_left_gets_nothing() -> None:
    house = routed().run(LEAD, over(COD)).run(COD, over(LEAD, "back"))
    house.do(i.RemoveAgent(agent_id=COD)).run(LEAD, over(COD, "again"))
    assert house.codes() == ["agent_left"]


def test_the_agent_itself_reads_why_a_message_with_a_summary_was_refused() -> None:
    house = routed().run(LEAD)
    house.queue(LEAD, skill("handoff_summary"), task=T1).run(LEAD, over(AgentId("zoe")))
    assert house.codes() == ["bad_handoff"]
    assert house.last(LEAD).work.executor == "converse"


@pytest.mark.req("MA-45", "MA-74")
def test_the_senders_conversation_is_emptied_on_wish() -> None:
    house = routed().run(LEAD, over(COD)).run(COD, over(LEAD, "back", clear=True))
    (moved,) = seen(house, WindowMoved)
    assert (moved.thread_id, moved.size) == (thread(COD, "t1"), 0)
    assert moved.window_from > house.state.threads[thread(COD, "t1")].last


def test_a_task_that_moves_too_often_ends_with_the_reason() -> None:
    house = routed(max_hops=2).run(LEAD, over(COD, "a")).run(COD, over(LEAD, "b")).run(LEAD, over(COD, "c"))
    (end,) = seen(house, TaskEnded)
    assert end.state == "failed"
    assert end.summary == "The task was handed over 2 times, which is the limit (max_hops), and is not done."


def test_a_task_that_is_only_sent_to_and_fro_ends_but_not_if_a_tool_was_used() -> None:
    idle, busy = routed(), routed()
    for house in (idle, busy):
        house.run(LEAD, over(COD, "You."))
        if house is busy:
            house.queue(COD, tool(instruction={"command": "ls"}), skill(), task=T1).run(COD).run(COD)
        house.run(COD, over(LEAD, "No, you.")).run(LEAD, over(COD, "you. ")).run(COD, over(LEAD, "No,  you."))
    (end,) = seen(idle, TaskEnded)
    assert end.summary.startswith("cod and lead only send the task back and forth")
    assert end.summary.endswith("No,  you.")
    assert seen(busy, TaskEnded) == []


def test_only_people_make_a_task_that_is_passed_on() -> None:
    house = House.furnished()
    house.queue(BOSS).run(
        BOSS, i.AddTask(name="x", intention="x", manager=BOSS, routing=Routing(main=BOSS, members=()))
    )
    assert house.codes() == ["not_manager"]


HOPS = st.builds(
    Hop,
    sender=st.sampled_from([LEAD, COD]),
    receiver=st.sampled_from([COD, TED]),
    content=st.sampled_from(["a", "b"]),
    acted=st.booleans(),
)


@given(st.lists(HOPS, max_size=6).map(tuple))
def test_a_ping_pong_is_four_hops_between_two_agents_with_two_messages_and_nothing_done(hops: tuple[Hop, ...]) -> None:
    last = hops[-HOPS_KEPT:]
    is_loop = is_ping_pong(hops)
    assert not is_loop or (len(last) == HOPS_KEPT and not any(hop.acted for hop in last))
    assert not is_loop or {last[0].sender, last[0].receiver} == {last[1].sender, last[1].receiver}
    assert not is_loop or (last[0], last[1]) == (last[2], last[3])


@given(st.text(min_size=1), st.text(min_size=1), st.lists(HOPS, max_size=3).map(tuple))
def test_the_same_two_messages_to_and_fro_are_a_ping_pong_after_any_beginning(
    one: str, two: str, before: tuple[Hop, ...]
) -> None:
    there, back = make_hop(LEAD, COD, one), make_hop(COD, LEAD, two)
    assert is_ping_pong((*before, there, back, there, back))
    assert not is_ping_pong((*before, there, back, evolve(there, acted=True), back))
