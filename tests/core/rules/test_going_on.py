"""Steps with which nobody wants anything new: word of what an agent has asked for itself, and the same once more."""

import pytest

from greenroom.core.base.ids import AgentId
from greenroom.core.rules.intents import AskInfo, NeedToolDecision, PostNote, QueueSteps, SendMessage
from tests.core.house import ANN, BOB, CY, HUE, MINUTE, PIA, T1, T2, House, question, reply, skill, tool


def post(receiver: AgentId, *, need_reply: bool = False) -> SendMessage:
    return SendMessage(task_id=T1, receiver=(receiver,), message="hello", need_reply=need_reply)


def test_what_somebody_else_wants_is_new() -> None:
    house = House.furnished().queue(ANN).run(ANN, post(BOB, need_reply=True))
    assert not house.last(BOB).goes_on
    assert not house.do(post(BOB), by=HUE).last(BOB).goes_on
    assert not house.queue(BOB).last(BOB).goes_on


def test_an_answer_goes_on_whoever_gives_it() -> None:
    for who in (BOB, HUE):
        house = House.furnished()
        (waiting,) = house.ask_agent(ANN, who)
        house.do(reply(waiting, ANN), by=who)
        assert house.last(ANN).goes_on


@pytest.mark.parametrize("need_reply", [True, False])
def test_so_does_what_is_made_of_a_question_that_nobody_waits_for(need_reply: bool) -> None:
    house = House.furnished().queue(ANN).run(ANN, post(BOB, need_reply=True))
    house.run(BOB, post(ANN, need_reply=need_reply), post(CY))
    assert house.last(ANN).goes_on
    assert not house.last(CY).goes_on, "for others it is new"


def test_so_does_what_the_house_answers_and_tells() -> None:
    house = House.furnished().queue(PIA).run(PIA, AskInfo(query="all_agents", task_id=T1))
    assert house.last(PIA).goes_on
    house = House.furnished()
    (waiting,) = house.ask_agent(ANN, BOB)
    assert house.later(MINUTE).fire(waiting).last(ANN).goes_on, "nobody answers"


def test_so_does_a_look_at_what_a_tool_has_brought() -> None:
    house = House.furnished().queue(PIA, tool("crawl", {}))
    house.run(PIA, NeedToolDecision(agent_id=PIA, task_id=T1, stage_id=None, tool_name="crawl"))
    assert (house.todo(PIA), house.last(PIA).goes_on) == (["tool_decision"], True)


def test_so_does_a_look_at_what_is_in_doubt() -> None:
    house = House.furnished().queue(ANN, tool("shell", {}))
    house.start(ANN, "effectful")
    assert house.release(ANN).last(ANN).goes_on


def test_an_answer_that_is_read_again_still_goes_on_and_a_wish_is_still_new() -> None:
    house = House.furnished()
    (waiting,) = house.ask_agent(PIA, BOB)
    house.run(BOB, reply(waiting, PIA))
    again = QueueSteps(agent_id=PIA, works=(house.last(PIA).work,), place="next")
    assert house.run(PIA, again).last(PIA).goes_on
    house = House.furnished().do(post(PIA), by=HUE)
    again = QueueSteps(agent_id=PIA, works=(house.last(PIA).work,), place="next")
    assert not house.run(PIA, again).last(PIA).goes_on


def test_a_letter_that_is_answered_later_is_still_that_letter() -> None:
    house = House.furnished()
    house.ask_agent(ANN, PIA)
    first = house.last(PIA)
    house.run(PIA, question(BOB))
    later = house.last(PIA)
    assert (later.step_id != first.step_id, later.work) == (True, first.work)
    assert (later.message_id, later.goes_on) == (first.message_id, True)
    assert first.message_id == "ann>1"


def test_and_so_it_is_when_what_was_asked_for_was_refused() -> None:
    house = House.furnished().do(post(PIA), by=HUE)
    house.run(PIA, PostNote(task_id=T2, content="x"))
    (later,) = house.world.steps_of(PIA)
    assert (later.message_id, later.retry, later.goes_on) == ("hue>1", 1, True)


def test_what_has_no_letter_gets_none() -> None:
    house = House.furnished().queue(PIA, skill("planning")).run(PIA, PostNote(task_id=T2, content="x"))
    assert (house.last(PIA).message_id, house.last(PIA).retry) == (None, 1)
