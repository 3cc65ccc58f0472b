"""The chain of a tool that goes on and on: an instruction, the tool, a decision, and so on until one ends it."""

import pytest

from greenroom.core.base.ids import StepId
from greenroom.core.rules.intents import ModifyStep, NeedToolDecision, QueueSteps
from tests.core.house import PIA, T1, House, skill, tool

FILL = skill("instruction_generation")
DECIDE = NeedToolDecision(agent_id=PIA, task_id=T1, stage_id=None, tool_name="crawl")


def filled(number: int) -> ModifyStep:
    return ModifyStep(step_id=StepId(f"pia#{number}"), work=tool("crawl", {"url": f"page {number}"}))


@pytest.mark.req("MAS-187")
def test_a_tool_is_used_in_two_steps_and_asks_no_model_itself() -> None:
    house = House.furnished().queue(PIA, FILL, tool("crawl"))
    assert house.next(PIA) == "pia#1", "the tool waits for its instruction"
    house.run(PIA, filled(2))
    ran = house.start(PIA, effect="effectful")
    assert (ran.work.executor, ran.work.instruction_content) == ("crawl", {"url": "page 2"})
    house.finish(PIA, result={"output": "the page"})
    assert house.todo(PIA) == []
    assert house.ended("pia#2").spent.tokens == 0


@pytest.mark.req("MAS-188")
def test_a_long_chain_alternates_and_ends_with_a_decision_that_adds_nothing() -> None:
    house, done = House.furnished().queue(PIA, FILL, tool("crawl"), skill("reflection")), list[str]()
    for first in (1, 5, 8):
        done += [house.start(PIA).work.executor]
        house.finish(PIA, filled(first + 1))
        done += [house.start(PIA, effect="effectful").work.executor]
        house.finish(PIA, DECIDE)
        done += [house.start(PIA).work.executor]
        again = QueueSteps(agent_id=PIA, works=(FILL, tool("crawl")), place="next")
        house.finish(PIA, *((again,) if first != 8 else ()))
    assert done == ["instruction_generation", "crawl", "tool_decision"] * 3
    assert house.todo(PIA) == ["reflection"], "what was planned behind the chain comes after it"
    assert house.codes() == []
