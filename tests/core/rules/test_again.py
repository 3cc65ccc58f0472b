"""Once more: a step whose outcome could not be used is put before the others, as what it was."""

import pytest

from greenroom.core.rules.intents import NeedToolDecision, QueueSteps, SendMessage
from greenroom.core.state.step import Work
from tests.core.house import BOB, HUE, PIA, S1, T1, House, plan, skill, tool


def once_more(*works: Work) -> QueueSteps:
    """What a skill asks for that has to be asked again."""
    return QueueSteps(agent_id=PIA, works=works, place="next")


def planning() -> House:
    return House.furnished(stages=(plan(("one", PIA)),)).assign()


@pytest.mark.req("MAS-131")
def test_a_plan_that_is_made_again_is_no_plan_yet_and_gets_no_look_back() -> None:
    house = planning()
    house.run(PIA, once_more(house.world.steps[house.agent(PIA).todo[0]].work))
    assert house.todo(PIA) == ["planning"]


@pytest.mark.parametrize("name", ["summary", "tool_decision"])
def test_what_nobody_may_plan_may_be_tried_again_by_itself_and_not_by_another_step(name: str) -> None:
    house = planning().run(PIA)
    house.queue(PIA, skill(name, "as it was")).run(PIA, once_more(skill(name, "as it was")))
    assert house.todo(PIA) == [name]
    house.run(PIA, once_more(skill(name, "something else")))
    assert house.codes() == [f"{name}_not_planned"]


def test_a_message_that_is_read_again_still_holds_its_stage_up() -> None:
    house = planning().run(PIA)
    house.do(SendMessage(task_id=T1, receiver=(PIA,), message="hello", stage_relative=S1), by=BOB)
    first = house.world.steps[house.agent(PIA).todo[0]]
    house.run(PIA, once_more(first.work))
    assert house.last(PIA).message_id == first.message_id == "bob>1"


def test_on_the_way_to_an_answer_it_goes_before_what_was_planned_behind_it() -> None:
    house = House.furnished()
    waiting = house.ask_agent(BOB, PIA)[0]
    fills = skill("instruction_generation")
    house.run(PIA, QueueSteps(agent_id=PIA, works=(fills, tool("crawl"), skill("send_message"))))
    house.run(PIA, once_more(fills))
    assert house.todo(PIA) == ["instruction_generation", "crawl", "send_message"]
    assert {house.world.steps[name].answers for name in house.agent(PIA).todo} == {waiting}


def test_a_tool_decision_comes_before_the_rest_of_the_plan_where_somebody_waits() -> None:
    house = House.furnished()
    house.ask_agent(BOB, PIA)
    house.run(PIA, QueueSteps(agent_id=PIA, works=(tool("crawl", {}), skill("send_message"))))
    house.run(PIA, NeedToolDecision(agent_id=PIA, task_id=T1, stage_id=None, tool_name="crawl"))
    assert house.todo(PIA) == ["tool_decision", "send_message"]


def test_where_nothing_of_the_way_is_left_it_goes_where_all_go_that_jump() -> None:
    house = House.furnished()
    house.ask_agent(BOB, PIA)
    house.do(SendMessage(task_id=T1, receiver=(PIA,), message="And?", need_reply=True), by=HUE)
    house.run(PIA, once_more(skill("send_message", house.texts(PIA)[0])))
    assert [house.world.steps[name].answers is None for name in house.agent(PIA).todo] == [True, False]
