"""An agent's queue: which step is next, and where a new one goes."""

from typing import Literal

import pytest

from greenroom.core.base.ids import AgentId
from greenroom.core.rules.intents import AddTask, FinishStage, PauseTask, QueueSteps, ResumeTask, SendMessage
from greenroom.core.rules.queue import is_thread_open, next_step
from greenroom.core.state.mas_format import collect_working_memory
from greenroom.core.state.step import StepQueued, StepTerms
from tests.core.house import ANN, BOB, BOSS, CY, S1, T1, T2, House, plan, question, reply, skill, thread, tool

ASKS = StepTerms(effect="pure", verdict="ask", digest="d")


def test_steps_run_in_the_order_of_the_queue_whatever_stage_they_belong_to() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).queue(ANN, skill("merge")).assign()
    house.queue(ANN, skill("reflection"), stage=S1)
    ran = []
    while (step := next_step(house.state, ANN)) is not None:
        ran.append(step.work.executor)
        house.run(ANN)
    assert ran == ["merge", "converse", "reflection"]


@pytest.mark.req("MAS-74", "MAS-92")
def test_add_step_appends_and_add_next_step_goes_before_the_next_one_in_the_order_given() -> None:
    house = House.furnished().queue(ANN, skill("planning"), skill("reflection"))
    house.queue(ANN, skill("merge"), tool("shell", {}), place="next")
    assert house.todo(ANN) == ["merge", "shell", "planning", "reflection"]
    assert collect_working_memory(house.state, ANN) == {T1: {"no_relative": ["ann#3", "ann#4", "ann#1", "ann#2"]}}


@pytest.mark.req("MAS-75")
@pytest.mark.parametrize("place", ["last", "next"])
def test_whoever_queues_steps_is_told_their_ids_and_the_agent_remembers_them(place: Literal["last", "next"]) -> None:
    house = House.furnished().queue(ANN).queue(ANN, skill("merge"), skill("reflection"), place=place)
    told = [event.step_id for event in house.happened(StepQueued)]
    assert told == ["ann#2", "ann#3"]
    remembered = collect_working_memory(house.state, ANN)[T1]["no_relative"]
    assert remembered == (["ann#1", *told] if place == "last" else [*told, "ann#1"])


@pytest.mark.req("MAS-92")
def test_steps_queued_next_do_not_disturb_the_one_that_runs() -> None:
    house = House.furnished().queue(ANN, skill("planning"), skill("reflection"))
    house.start(ANN)
    house.queue(ANN, skill("merge"), place="next")
    assert house.running(ANN).work.executor == "planning"
    assert house.todo(ANN) == ["merge", "reflection"]


def test_jumpers_keep_their_order_among_each_other() -> None:
    house = House.furnished().queue(ANN, skill("planning"))
    for sender in (BOB, CY, BOSS):
        house.ask_agent(sender, ANN)
    assert house.senders(ANN) == ["from: bob", "from: cy", "from: boss", ""]


def test_a_jumper_stays_behind_earlier_ones_when_an_interrupted_step_comes_back_in_front() -> None:
    house = House.furnished().queue(ANN, skill("planning"))
    house.start(ANN)
    house.ask_agent(BOB, ANN)
    house.release(ANN)
    house.ask_agent(CY, ANN)
    assert house.senders(ANN) == ["", "from: bob", "from: cy"]


def test_steps_queued_next_stand_behind_those_that_jumped() -> None:
    house = House.furnished().queue(ANN, skill("planning"))
    house.ask_agent(BOB, ANN)
    house.queue(ANN, skill("merge"), place="next")
    assert house.todo(ANN) == ["converse", "merge", "planning"]


def test_nobody_has_a_step_who_is_not_there_or_has_nothing_to_do() -> None:
    house = House.furnished()
    assert house.next(AgentId("ghost")) is None
    assert house.next(ANN) is None


@pytest.mark.parametrize("hold", ["pending", "approval"])
def test_a_step_that_waits_holds_up_its_own_thread_and_no_other(hold: str) -> None:
    house = House.furnished().do(AddTask(name="side", intention="x", manager=BOSS, group=(ANN,)))
    house.queue(ANN, tool("shell") if hold == "pending" else skill(), skill("reflection"))
    house.queue(ANN, skill("merge"), task=T2)
    if hold == "approval":
        house.start(ANN, terms=ASKS)
    step = next_step(house.state, ANN)
    assert step is not None
    assert step.work.executor == "merge"
    house.run(ANN)
    assert house.next(ANN) is None


def test_a_paused_or_unstarted_task_holds_its_own_steps_only() -> None:
    house = House.furnished().do(AddTask(name="side", intention="x", manager=BOSS, group=(ANN,), start=False))
    house.queue(ANN, task=T2).queue(ANN, skill("merge"))
    assert house.next(ANN) == "ann#2"
    house.do(PauseTask(task_id=T1))
    assert house.next(ANN) is None
    house.do(ResumeTask(task_id=T1))
    assert house.next(ANN) == "ann#2"


def test_a_locked_agent_runs_only_what_somebody_waits_for() -> None:
    house = House.furnished().queue(ANN, skill("merge"))
    waiting = house.ask_agent(BOB, ANN)[0]
    house.do(question(CY), by=ANN)
    assert house.next(ANN) == "ann#2"
    house.run(ANN, reply(waiting, BOB))
    assert house.next(ANN) is None


def test_a_locked_agent_does_not_run_an_answer_that_nobody_waits_for_any_more() -> None:
    house = House.furnished()
    waiting = house.ask_agent(BOB, ANN, timeout=10)[0]
    house.do(question(CY), by=ANN)
    assert house.next(ANN) == "ann#1"
    house.later(10).fire(waiting)
    assert house.next(ANN) is None
    house.run(CY, reply(house.agent(ANN).step_lock[0], ANN))
    assert house.next(ANN) is not None


def test_a_thread_is_open_until_its_stage_or_task_is_over() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign()
    name = thread(ANN, "t1.s1.1")
    house.start(ANN)
    assert is_thread_open(house.state, name)
    house.do(FinishStage(stage_id=S1))
    assert name in house.state.threads
    assert not is_thread_open(house.state, name)
    assert not is_thread_open(house.state, thread(ANN, "nowhere"))
    assert not is_thread_open(house.state, None)


def test_no_steps_go_into_a_conversation_that_is_over() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign()
    house.start(ANN)
    house.do(FinishStage(stage_id=S1))
    wish = QueueSteps(agent_id=ANN, works=(skill(),), thread_id=thread(ANN, "t1.s1.1"))
    house.refused("unknown_thread", wish)


def test_a_message_to_oneself_is_a_step_for_later() -> None:
    house = House.furnished().queue(ANN).run(ANN, SendMessage(task_id=T1, receiver=(ANN,), message="remember"))
    assert house.todo(ANN) == ["converse"]
