"""A tool step waits for its instruction as long as somebody is going to fill it in, and no longer."""

from typing import Literal

import pytest

from greenroom.core.base.ids import StepId
from greenroom.core.rules import intents as i
from greenroom.core.state.step import StepTerms, Work
from tests.core.house import ANN, BOB, HUE, PIA, S1, SYSTEM, T1, House, plan, skill, thread, tool

FILL = skill("instruction_generation")
GO = {"url": "x"}
ASKS = StepTerms(effect="model", verdict="ask", digest="d")
DENIED = StepTerms(effect="model", verdict="deny", rule="no")
TOOL = StepId("pia#2")


def planned(*rest: str) -> House:
    """Pia has an instruction to generate, the tool it is for, and the rest of her plan."""
    return House.furnished().queue(PIA, FILL, tool("crawl"), *map(skill, rest))


def filled(name: str = TOOL) -> i.ModifyStep:
    return i.ModifyStep(step_id=StepId(name), work=tool("crawl", GO))


def notices(house: House) -> tuple[str, ...]:
    return house.state.threads[thread(PIA, T1)].notices


def gone(house: House, name: str = TOOL) -> None:
    """The tool has failed, Pia was told, and there is something in which she reads that."""
    assert house.ended(name).state == "failed"
    assert "ended without filling in its instruction" in house.ended(name).error
    assert any(name in text and "was not run" in text for text in notices(house))
    assert house.next(PIA) is not None


@pytest.mark.req("MAS-84", "MAS-87")
def test_a_filled_in_tool_runs() -> None:
    house = planned("reflection").run(PIA, filled())
    assert house.next(PIA) == TOOL
    assert house.codes() == []


@pytest.mark.parametrize("outcome", ["finished", "failed", "uncertain"])
def test_a_tool_whose_instruction_never_came_fails(outcome: Literal["finished", "failed", "uncertain"]) -> None:
    house = planned("reflection")
    house.start(PIA)
    house.finish(PIA, outcome=outcome)
    gone(house)
    assert house.todo(PIA) == ["reflection"]


def test_who_has_nothing_left_to_do_gets_a_step_to_react_in() -> None:
    house = planned().run(PIA)
    gone(house)
    assert house.todo(PIA) == ["reflection"]
    assert "Plan it again" in house.texts(PIA)[0]


def test_an_instruction_that_was_refused_leaves_the_tool_unfilled() -> None:
    house = planned("reflection").run(PIA, i.ModifyStep(step_id=TOOL, work=tool("shell", GO)))
    assert house.codes() == ["no_such_tool", "no_instruction"]
    gone(house)


@pytest.mark.parametrize("way", ["removed", "denied by the policy", "denied by a person", "cut off in vain"])
def test_a_tool_fails_however_its_instruction_was_lost(way: str) -> None:
    house = planned("reflection")
    if way == "removed":
        house.do(i.RemoveStep(step_id=StepId("pia#1")), by=PIA)
    elif way == "denied by the policy":
        house.start(PIA, terms=DENIED)
    elif way == "denied by a person":
        house.start(PIA, terms=ASKS)
        house.do(i.AnswerApproval(approval_id=house.question(PIA).approval_id, answer="denied"), by=HUE)
    else:
        house.start(PIA, "effectful")
        house.release(PIA)
    gone(house)


def test_an_interrupted_instruction_is_generated_again_and_its_tool_waits() -> None:
    house = planned()
    house.start(PIA, "model")
    house.do(i.Recover(epoch=1, owner="next"), by=SYSTEM)
    assert house.state.steps[TOOL].state == "pending"
    house.run(PIA, filled())
    assert house.next(PIA) == TOOL


def test_each_instruction_is_for_the_next_tool() -> None:
    house = House.furnished().queue(PIA, FILL, tool("crawl"), FILL, tool("crawl"))
    house.run(PIA)
    gone(house)
    assert house.state.steps[StepId("pia#4")].state == "pending"
    house.run(PIA, filled("pia#4"))
    assert house.next(PIA) == "pia#4"


def test_a_tool_without_an_instruction_step_of_its_own_is_nobodys_to_fail() -> None:
    house = House.furnished().queue(PIA, FILL, tool("crawl"), skill("reflection"), tool("crawl"))
    house.run(PIA, filled())
    assert house.state.steps[StepId("pia#4")].state == "pending"
    assert house.next(PIA) == TOOL


def test_a_tool_waits_while_somebody_else_before_it_may_fill_it_in() -> None:
    house = House.furnished().queue(PIA, FILL, FILL, tool("crawl"))
    house.run(PIA)
    assert house.state.steps[StepId("pia#3")].state == "pending"
    house.start(PIA)
    house.queue(PIA, FILL, place="next").do(i.RemoveStep(step_id=StepId("pia#4")), by=PIA)
    assert house.state.steps[StepId("pia#3")].state == "pending", "the one that runs may fill it in"
    house.finish(PIA, i.QueueSteps(agent_id=PIA, works=(FILL,), place="next"))
    assert house.state.steps[StepId("pia#3")].state == "pending", "another go at it was queued"
    house.run(PIA)
    gone(house, "pia#3")


def test_an_instruction_step_without_a_tool_ends_like_any_other() -> None:
    house = House.furnished().queue(PIA, FILL, skill("reflection"), tool("crawl", GO)).run(PIA)
    assert house.codes() == []
    assert house.todo(PIA) == ["reflection", "crawl"]


def test_a_tool_of_another_conversation_waits_for_its_own_instruction() -> None:
    house = House.furnished(stages=(plan(("one", PIA)),)).assign().queue(PIA, FILL)
    house.do(i.QueueSteps(agent_id=PIA, works=(tool("crawl"),), thread_id=thread(PIA, "t1.s1.1")))
    house.run(PIA).run(PIA)
    assert house.last(PIA).state == "pending"


def test_an_instruction_step_that_ends_with_its_stage_takes_an_unrelated_tool_along() -> None:
    house = House.furnished(stages=(plan(("one", BOB)),)).assign()
    house.queue(PIA, FILL, stage=S1).queue(PIA, tool("crawl")).do(i.FinishStage(stage_id=S1))
    gone(house)


def test_whoever_waited_for_the_answer_behind_the_tool_is_let_go() -> None:
    house = House.furnished()
    waiting = house.ask_agent(BOB, PIA)[0]
    house.run(PIA, i.QueueSteps(agent_id=PIA, works=(FILL, tool("crawl"))))
    house.run(PIA)
    assert house.released(waiting) == "unanswered"


def test_a_call_whose_tool_fails_for_want_of_an_instruction_goes_on() -> None:
    house = House.furnished().queue(BOB)
    ask = i.SendMessage(task_id=T1, receiver=(PIA,), message="x", need_reply=True, waiting=True, delivery="call")
    house.run(BOB, ask).run(PIA, i.QueueSteps(agent_id=PIA, works=(FILL, tool("crawl")))).run(PIA)
    assert house.todo(PIA) == ["reflection"]
    assert house.last(PIA).thread_id == thread(PIA, "bob>1")


@pytest.mark.parametrize("running", [True, False])
def test_a_cancelled_task_cancels_both(running: bool) -> None:
    house = planned()
    if running:
        house.start(PIA)
    house.do(i.CancelTask(task_id=T1))
    if running:
        house.release(PIA)
    assert house.ended(TOOL).state == "cancelled"
    assert not house.state.tasks


def test_a_removed_agent_leaves_nothing_behind() -> None:
    house = planned().do(i.RemoveAgent(agent_id=PIA))
    assert (house.ended("pia#1").state, house.ended(TOOL).state) == ("skipped", "skipped")


def test_a_converser_reacts_in_its_conversation() -> None:
    house = House.furnished().queue(ANN, FILL, tool("shell")).run(ANN)
    assert house.todo(ANN) == ["converse"]


# ---------------------------------------------------------------------------------------------- planned without


def plans(*works: Work) -> House:
    """Pia's step asks for these."""
    return House.furnished().queue(PIA).run(PIA, i.QueueSteps(agent_id=PIA, works=works))


@pytest.mark.parametrize(
    "works",
    [
        (tool("crawl"), skill("reflection")),
        (tool("crawl"), FILL),
        (FILL, tool("crawl"), tool("crawl")),
    ],
    ids=["none", "behind it", "one for two"],
)
def test_nobody_plans_a_tool_that_nothing_fills_in(works: tuple[Work, ...]) -> None:
    house = plans(*works)
    assert house.codes() == ["no_instruction"]
    assert "put an instruction_generation step before" in notices(house)[0]
    assert house.todo(PIA) == ["converse"]


def test_a_tool_is_planned_with_its_instruction_or_behind_what_fills_it_in() -> None:
    house = plans(FILL, tool("crawl"), tool("crawl", GO), FILL, tool("crawl"))
    assert house.codes() == []
    assert len(house.todo(PIA)) == 5


def test_a_tool_is_filled_in_by_a_step_that_stands_in_its_conversation_already() -> None:
    house = House.furnished().queue(PIA, skill("planning"), FILL)
    house.run(PIA, i.QueueSteps(agent_id=PIA, works=(tool("crawl"),)))
    assert house.codes() == []


def test_a_tool_that_goes_before_the_step_in_its_conversation_is_not_filled_in_by_it() -> None:
    house = House.furnished().queue(PIA, skill("planning"), FILL)
    house.run(PIA, i.QueueSteps(agent_id=PIA, works=(tool("crawl"),), place="next"))
    assert house.codes() == ["no_instruction"]


def test_a_tool_that_a_person_left_unfilled_holds_up_no_plan() -> None:
    house = House.furnished().queue(PIA, skill("planning"), tool("crawl"))
    house.run(PIA, i.QueueSteps(agent_id=PIA, works=(FILL, tool("crawl"))))
    assert house.codes() == []
