"""What a person agrees to beyond one call, and answers in words."""

from greenroom.core.base.ids import AgentId, ApprovalId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.rules.intents import AnswerApproval, ForkTeam
from greenroom.core.state.step import Terms
from greenroom.core.state.team import Origin
from tests.core.house import ANN, BOB, DOOR, T1, House, thread, tool

RULE = "allow command git push"
GRANTS = Terms(effect="effectful", verdict="ask", question="push?", digest="git push", grant=RULE)


def asked(house: House, *agents: AgentId) -> list[ApprovalId]:
    """All of these want the same; what they are asked."""
    for agent in agents:
        house.queue(agent, tool("shell", {"script": "git push"}))
        house.start(agent, terms=GRANTS)
    return [one.approval_id for one in house.world.approvals.values()]


def test_a_yes_to_a_rule_is_one_for_all_who_have_asked_for_the_same() -> None:
    house = House.furnished()
    first, *_ = asked(house, ANN, BOB)
    house.do(AnswerApproval(approval_id=first, answer="approved", scope="run"))
    assert {one.state for one in house.world.approvals.values()} == {"approved"}
    assert house.world.grants[RULE].by == DOOR
    assert [house.next(agent) is not None for agent in (ANN, BOB)] == [True, True]


def test_a_yes_to_one_call_is_none_to_a_rule() -> None:
    house = House.furnished()
    first, second = asked(house, ANN, BOB)
    house.do(AnswerApproval(approval_id=first, answer="approved"))
    house.do(AnswerApproval(approval_id=second, answer="denied", scope="always"))
    assert not house.world.grants


def test_a_person_may_agree_to_another_rule_but_not_to_none() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, terms=evolve(GRANTS, grant=""))
    (name,) = house.world.approvals
    house.refused("no_rule", AnswerApproval(approval_id=name, answer="approved", scope="always"))
    house.do(AnswerApproval(approval_id=name, answer="approved", scope="always", grant="allow command git"))
    assert list(house.world.grants) == ["allow command git"]


def test_what_is_only_told_needs_nobody() -> None:
    house = House.furnished().queue(ANN)
    assert house.start(ANN, terms=evolve(GRANTS, verdict="notify")).state == "running"


def test_another_team_has_agreed_to_nothing() -> None:
    house = House.furnished()
    (name,) = asked(house, ANN)
    house.do(AnswerApproval(approval_id=name, answer="approved", scope="run"))
    house.do(ForkTeam(team_id=TeamId("fork"), origin=Origin(team_id=TeamId("team"), version=len(house.log))))
    assert not house.world.grants


def test_a_question_that_wants_words_is_answered_with_some() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, terms=Terms(effect="pure", verdict="ask", question="Which?", digest="q", words=True))
    (name,) = house.world.approvals
    house.refused("no_words", AnswerApproval(approval_id=name, answer="approved", reason=" "))
    house.do(AnswerApproval(approval_id=name, answer="approved", reason="blue"))
    assert house.world.approvals[name].reason == "blue"
    assert not house.world.threads[thread(ANN, T1)].notices, "the words are the step's, not a notice"
