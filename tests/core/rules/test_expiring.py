"""Questions that expire: only where it was said, as a no that the agent reads, and no answer counts afterwards."""

import pytest

from greenroom.core.base.ids import TeamId, timer_id
from greenroom.core.rules.intents import AnswerApproval, Declare, FireTimer, ForkTeam
from greenroom.core.state.approval import ApprovalAnswered
from greenroom.core.state.step import StepTerms
from greenroom.core.state.team import ForkOrigin
from greenroom.core.state.timer import TimerCancelled
from tests.core.house import ANN, BOB, HUE, MINUTE, SYSTEM, House
from tests.core.rules.test_endings import ASK

HOUR, DAY = 60 * MINUTE, 24 * 60 * MINUTE
GRANTED = StepTerms(effect="effectful", verdict="ask", question="run it?", digest="x", grant="command make")


def asking(patience: int | None) -> House:
    """Ann asks about her step, in a house in which questions wait for so long."""
    house = House.furnished().do(Declare(approvals_expire=patience)).queue(ANN)
    house.start(ANN, terms=ASK)
    return house


def test_a_question_waits_for_ever_unless_it_was_said_how_long() -> None:
    house = asking(None)
    assert house.question(ANN).expires_at is None
    assert not house.state.timers
    house.later(1000 * DAY).do(AnswerApproval(approval_id=house.question(ANN).approval_id, answer="approved"), by=HUE)


@pytest.mark.parametrize(
    ("patience", "words"),
    [
        (DAY, "1 day"),
        (36 * HOUR, "36 hours"),
        (30 * MINUTE, "30 minutes"),
        (90_000, "90 seconds"),
        (500, "0.5 seconds"),
    ],
)
def test_what_nobody_answers_in_time_is_denied_and_the_agent_reads_why(patience: int, words: str) -> None:
    house = asking(patience)
    asked = house.question(ANN)
    assert asked.expires_at == asked.asked_at + patience
    house.later(patience).do(FireTimer(timer_id=timer_id(asked.step_id, "answer")), by=SYSTEM)
    (answered,) = house.happened(ApprovalAnswered)
    assert (answered.answer, answered.by) == ("denied", "system")
    ended = house.ended(asked.step_id)
    assert ended.state == "failed"
    assert ended.error == f"Denied: no one answered within {words}. Do without it, or say what is missing."
    assert not house.state.approvals
    assert not house.state.timers


def test_nothing_expires_before_its_time() -> None:
    house = asking(DAY).later(DAY - 1)
    house.refused("too_early", FireTimer(timer_id=timer_id(house.question(ANN).step_id, "answer")), by=SYSTEM)


def test_an_answer_that_comes_too_late_counts_for_nothing() -> None:
    house = asking(DAY).later(DAY)
    answer = AnswerApproval(approval_id=house.question(ANN).approval_id, answer="approved")
    assert "no one answered within 1 day" in house.refused("expired", answer, by=HUE).why


def test_an_answer_in_time_ends_the_clock() -> None:
    house = asking(DAY).later(DAY - 1)
    house.do(AnswerApproval(approval_id=house.question(ANN).approval_id, answer="approved"), by=HUE)
    assert house.happened(TimerCancelled)
    assert not house.state.timers


def test_a_yes_for_the_run_does_not_answer_what_has_expired() -> None:
    house = House.furnished().do(Declare(approvals_expire=DAY)).queue(ANN)
    house.start(ANN, terms=GRANTED)
    house.later(HOUR).queue(BOB)
    house.start(BOB, terms=GRANTED)
    house.later(DAY - HOUR)
    house.do(AnswerApproval(approval_id=house.question(BOB).approval_id, answer="approved", scope="run"), by=HUE)
    assert house.question(ANN).state == "pending"
    assert house.question(BOB).state == "approved"


def test_a_fork_asks_again_and_has_no_clock_of_the_past() -> None:
    house = asking(DAY)
    house.do(ForkTeam(team_id=TeamId("other"), origin=ForkOrigin(team_id=house.state.team.team_id, version=1)))
    assert not house.state.timers


def test_how_long_questions_wait_is_said_once() -> None:
    house = asking(DAY)
    before = len(house.log)
    house.do(Declare(approvals_expire=DAY))
    assert len(house.log) == before
