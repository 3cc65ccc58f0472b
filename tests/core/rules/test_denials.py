"""A no of the policy or of a person reaches the agent, and so does what the person says with a yes."""

import pytest

from greenroom.core.rules.intents import AnswerApproval, QueueSteps, RemoveStep
from greenroom.core.state.approval import Answer, ApprovalAnswered
from greenroom.core.state.step import Terms, Work
from tests.core.house import ANN, HUE, PIA, House, plan, skill, thread, tool

ASK = Terms(effect="effectful", verdict="ask", question="delete it?", digest="rm -r x")
DENY = Terms(effect="effectful", verdict="deny", rule="no crawling")


def asking() -> House:
    house = House.furnished().queue(ANN)
    house.start(ANN, terms=ASK)
    return house


def planned(*works: Work) -> House:
    """Pia plans these steps in a stage."""
    house = House.furnished(stages=(plan(("one", PIA)),)).assign()
    return house.run(PIA, QueueSteps(agent_id=PIA, works=works))


def given(*works: Work) -> House:
    """A person gives her these steps, and nothing to look back with."""
    house = House.furnished(stages=(plan(("one", PIA)),)).assign().run(PIA)
    return house.do(QueueSteps(agent_id=PIA, works=works, thread_id=thread(PIA, "t1.s1.1")))


def test_who_plans_reflects_on_what_the_policy_denies() -> None:
    house = given(tool("crawl", {"u": 1}))
    house.start(PIA, terms=DENY)
    assert house.todo(PIA) == ["reflection"]
    assert house.texts(PIA) == ["Step pia#2 (crawl) was not run. Not permitted: no crawling."]


def test_who_plans_reflects_on_what_a_person_denies_and_reads_why() -> None:
    house = given(tool("crawl", {"u": 1}))
    house.start(PIA, terms=ASK)
    answer = AnswerApproval(approval_id=house.question(PIA).approval_id, answer="denied", reason="Too slow.")
    house.do(answer, by=HUE)
    assert house.texts(PIA) == ["Step pia#2 (crawl) was not run. Denied by hue. Too slow."]


def test_who_plans_and_has_steps_left_reads_of_the_denial_in_the_next_one() -> None:
    house = planned(tool("crawl", {"u": 1}), skill("reflection"))
    house.start(PIA, terms=DENY)
    assert house.todo(PIA) == ["reflection"]
    assert house.codes() == ["denied"]


def test_a_reflection_that_is_denied_is_not_reflected_on() -> None:
    house = planned(skill("reflection"))
    house.start(PIA, terms=DENY)
    assert house.todo(PIA) == []
    assert house.codes() == ["denied"]


def test_what_a_person_removes_is_no_denial() -> None:
    house = planned(tool("crawl", {"u": 1}), skill("reflection"))
    house.do(RemoveStep(step_id=house.agent(PIA).todo[0]), by=HUE)
    assert house.codes() == []


@pytest.mark.parametrize("answer", ["approved", "denied"])
def test_the_reason_a_person_gives_is_kept_with_the_answer(answer: Answer) -> None:
    house = asking()
    approval = house.question(ANN).approval_id
    house.do(AnswerApproval(approval_id=approval, answer=answer, reason="only once"), by=HUE)
    assert [event.reason for event in house.happened(ApprovalAnswered)] == ["only once"]


def test_what_a_person_says_with_a_yes_is_read_by_the_agent() -> None:
    house = asking()
    house.do(AnswerApproval(approval_id=house.question(ANN).approval_id, answer="approved", reason="be quick"), by=HUE)
    assert house.question(ANN).reason == "be quick"
    assert house.codes() == ["approved"]
