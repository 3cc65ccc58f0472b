"""What a person or the clock decides: approvals and timers."""

from __future__ import annotations

import pytest

from greenroom.core.base.amounts import NOTHING, Amounts, Limits
from greenroom.core.base.ids import AgentId, ApprovalId, StepId, TaskId, TeamId, TimerId
from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.state.approval import ApprovalRequested, ApprovalVoided
from greenroom.core.state.reducer import reduce
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import StepBlocked, StepTerms
from greenroom.core.state.team import ForkOrigin
from tests.core.house import (
    ANN,
    BOB,
    BOSS,
    DOOR,
    HUE,
    PIA,
    SYSTEM,
    T1,
    T2,
    House,
    question,
    reply,
    skill,
    thread,
    tool,
)

ASK = StepTerms(effect="effectful", verdict="ask", question="delete it?", digest="rm -r x")
KEYED = StepTerms(effect="keyed", verdict="ask", question="delete it?", digest="rm -r x")
TEA = TimerId("ann!tea")


def asking() -> House:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN)
    house.start(ANN, terms=ASK)
    return house


def test_what_the_policy_denies_fails_before_it_starts() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, terms=StepTerms(effect="effectful", verdict="deny", rule="no deleting"))
    ended = house.ended("ann#1")
    assert (ended.state, ended.error, ended.spent) == ("failed", "Not permitted: no deleting.", NOTHING)


def test_no_model_speaks_for_an_agent_of_greenroom() -> None:
    own = AgentId("checks")
    house = House.furnished().do(i.AddAgent(agent_id=own, spec=AgentSpec(name="checks", kind="system")))
    house.do(i.AddParticipants(task_id=T1, agents=(own,))).queue(own, skill())
    house.start(own)
    assert house.ended("checks#1").error == "Not permitted: a system agent asks no model."


def test_a_step_that_must_be_asked_about_waits_as_state_with_a_letter_to_the_person() -> None:
    house = asking()
    step = house.state.steps[StepId("ann#1")]
    assert (step.state, step.terms) == ("awaiting_approval", ASK)
    assert house.question(ANN).asked_of == HUE
    (letter,) = house.state.mail.values()
    assert (letter.sender_id, letter.receiver, letter.message, letter.need_reply) == (ANN, (HUE,), "delete it?", True)


def test_a_step_that_waits_for_a_person_holds_neither_slot_nor_reservation() -> None:
    house = asking()
    assert house.agent(ANN).running is None
    assert all(budget.reserved == NOTHING for budget in house.state.budgets.values())
    house.do(i.AddTask(name="side", intention="x", manager=BOSS, group=(ANN,))).queue(ANN, task=T2)
    assert house.start(ANN).state == "running"


def test_a_yes_lets_it_start_and_settles_the_letter() -> None:
    house = asking().answer(ANN)
    assert not house.state.mail
    assert house.next(ANN) == "ann#1"
    assert house.start(ANN, terms=ASK).state == "running"
    house.finish(ANN)
    assert not house.state.approvals


def test_a_no_fails_the_step_and_lets_its_waiter_go() -> None:
    house = House.furnished()
    waiting = house.ask_agent(BOB, ANN)[0]
    house.start(ANN, terms=ASK)
    name = house.question(ANN).approval_id
    house.do(i.AnswerApproval(approval_id=name, answer="denied", reason="Never."), by=HUE)
    assert (house.ended("ann#1").state, house.ended("ann#1").error) == ("failed", "Denied by hue. Never.")
    assert house.released(waiting) == "unanswered"
    assert not house.state.mail
    house.refused("unknown_approval", i.AnswerApproval(approval_id=name, answer="approved"))


def test_another_call_than_the_one_that_was_shown_is_asked_about_again() -> None:
    house = asking().answer(ANN)
    step = house.start(ANN, terms=StepTerms(effect="effectful", verdict="ask", question="and this?", digest="rm -r /"))
    assert (step.state, step.approval) == ("awaiting_approval", "ann#1?2")
    assert len(house.happened(ApprovalVoided)) == 1
    assert [one.approval_id for one in house.state.approvals.values()] == ["ann#1?2"]


def test_the_policy_is_asked_again_after_the_yes() -> None:
    house = asking().answer(ANN)
    house.start(ANN, terms=StepTerms(effect="effectful", verdict="deny", digest=ASK.digest))
    assert house.ended("ann#1").state == "failed"
    assert not house.state.approvals


def test_a_policy_that_has_become_lenient_does_not_ask() -> None:
    house = asking().answer(ANN)
    assert house.start(ANN, terms=StepTerms(effect="pure")).state == "running"
    assert not house.happened(ApprovalVoided)


def test_a_yes_survives_waiting_for_room_in_the_budget() -> None:
    costly = StepTerms(effect="effectful", verdict="ask", digest="d", needs=Amounts(tokens=60))
    house = House.furnished(limits=Limits(tokens=100)).queue(BOB).queue(ANN)
    house.start(BOB, terms=StepTerms(effect="model", needs=Amounts(tokens=60)))
    house.start(ANN, terms=costly)
    house.answer(ANN)
    assert house.start(ANN, terms=costly).state == "awaiting_budget"
    house.finish(BOB)
    assert house.start(ANN, terms=costly).state == "running"


def test_a_hungry_step_may_have_to_be_asked_about_when_room_comes() -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(BOB).queue(ANN)
    house.start(BOB, terms=StepTerms(effect="model", needs=Amounts(tokens=60)))
    house.start(ANN, terms=StepTerms(effect="model", needs=Amounts(tokens=60)))
    house.finish(BOB)
    assert house.start(ANN, terms=ASK).state == "awaiting_approval"
    assert not house.state.awaiting_budget


@pytest.mark.parametrize("cut", ["crash", "pause", "release"])
def test_a_yes_holds_for_every_attempt_at_what_was_shown(cut: str) -> None:
    house = asking().answer(ANN)
    house.start(ANN, terms=KEYED)
    if cut == "crash":
        house.do(i.Recover(epoch=1, owner="next"), by=SYSTEM)
    elif cut == "pause":
        house.do(i.PauseTask(task_id=T1, now=True)).release(ANN).do(i.ResumeTask(task_id=T1))
    else:
        house.release(ANN)
    step = house.start(ANN, terms=KEYED)
    assert (step.state, step.attempt) == ("running", 2)
    assert house.happened(ApprovalRequested) == []
    house.finish(ANN)
    assert not house.state.approvals


def test_a_yes_does_not_hold_for_another_call_after_an_interruption() -> None:
    house = asking().answer(ANN)
    house.start(ANN, terms=KEYED)
    house.release(ANN)
    assert house.start(ANN, terms=evolve(KEYED, digest="rm -r /")).state == "awaiting_approval"
    assert [one.approval_id for one in house.state.approvals.values()] == ["ann#1?2"]


def test_a_yes_does_not_hold_for_an_interrupted_step_that_was_changed() -> None:
    house = asking().answer(ANN)
    house.start(ANN, terms=KEYED)
    house.release(ANN).do(i.ModifyStep(step_id=StepId("ann#1"), work=skill("merge")), by=ANN)
    assert house.start(ANN, terms=KEYED).state == "awaiting_approval"


def test_a_fork_asks_again_about_what_ran_with_a_yes() -> None:
    house = asking().answer(ANN)
    house.start(ANN, terms=KEYED)
    house.do(i.ForkTeam(team_id=TeamId("fork"), origin=ForkOrigin(team_id=TeamId("team"), version=9)))
    assert not house.state.approvals
    assert house.start(ANN, terms=KEYED).state == "awaiting_approval"


def test_a_question_that_an_old_log_asked_again_leaves_no_yes_behind() -> None:
    """Before, a yes was for one attempt: such a log asks a second time without a word about the first answer."""
    house = asking().answer(ANN)
    house.start(ANN, terms=KEYED)
    house.release(ANN)
    again = StepBlocked(
        at=house.now,
        step_id=StepId("ann#1"),
        state="awaiting_approval",
        terms=KEYED,
        approval=ApprovalId("ann#1?2"),
    )
    assert not reduce(house.state, again).approvals


def test_only_a_person_answers() -> None:
    house = asking()
    name = house.question(ANN).approval_id
    house.refused("not_a_person", i.AnswerApproval(approval_id=name, answer="approved"), by=ANN)
    house.refused("not_a_person", i.AnswerApproval(approval_id=name, answer="approved"), by=BOSS)
    house.refused("unknown_approval", i.AnswerApproval(approval_id=ApprovalId("x"), answer="approved"))
    house.do(i.AnswerApproval(approval_id=name, answer="approved"), by=DOOR)
    house.refused("unknown_approval", i.AnswerApproval(approval_id=name, answer="denied"))


def test_without_a_person_in_the_house_the_question_still_stands() -> None:
    house = House.furnished().do(i.RemoveAgent(agent_id=HUE)).queue(ANN)
    house.start(ANN, terms=ASK)
    assert house.question(ANN).asked_of is None
    assert not house.state.mail
    house.answer(ANN, by=DOOR)
    assert house.next(ANN) == "ann#1"


def test_a_question_about_a_cancelled_step_is_settled() -> None:
    house = asking().do(i.CancelTask(task_id=T1))
    assert not house.state.approvals
    assert not house.state.mail


def test_a_step_that_is_asked_about_has_begun_and_is_not_removed() -> None:
    asking().refused("step_begun", i.RemoveStep(step_id=StepId("ann#1")), by=ANN)


def test_a_message_that_only_looks_like_a_question_does_no_harm() -> None:
    house = asking()
    fake = {"approval_id": house.question(ANN).approval_id}
    house.queue(BOB).run(BOB, i.SendMessage(task_id=T1, receiver=(HUE, PIA), message="hm?", need_reply=True, data=fake))
    house.answer(ANN)
    assert not house.state.mail


# ---------------------------------------------------------------------------------------------- timers


def tea(due: int, agent: AgentId = ANN) -> i.SetTimer:
    return i.SetTimer(agent_id=agent, task_id=T1, name="tea", due=due, text="tea is ready")


@pytest.mark.parametrize(("agent", "executor"), [(ANN, "converse"), (PIA, "process_message")])
def test_a_timer_wakes_its_agent_when_it_is_due(agent: AgentId, executor: str) -> None:
    house = House.furnished()
    house.do(tea(house.now + 10, agent), by=agent)
    name = TimerId(f"{agent}!tea")
    house.refused("too_early", i.FireTimer(timer_id=name), by=SYSTEM)
    house.later(10).do(i.FireTimer(timer_id=name), by=SYSTEM)
    assert (house.todo(agent), house.texts(agent)) == ([executor], ["tea is ready"])
    house.refused("unknown_timer", i.FireTimer(timer_id=name), by=SYSTEM)


def test_a_timer_set_again_replaces_the_old_one() -> None:
    house = House.furnished()
    house.do(tea(house.now + 10), tea(house.now + 20), by=ANN)
    assert [timer.due for timer in house.state.timers.values()] == [house.now + 20]


def test_a_timer_is_cancelled_by_its_agent_or_a_person() -> None:
    house = House.furnished()
    house.do(tea(house.now), by=ANN)
    house.refused("not_manager", i.CancelTimer(timer_id=TEA), by=BOB)
    house.do(i.CancelTimer(timer_id=TEA), by=ANN)
    house.refused("unknown_timer", i.CancelTimer(timer_id=TEA), by=ANN)
    house.do(tea(house.now), i.CancelTimer(timer_id=TEA))
    assert not house.state.timers


@pytest.mark.parametrize("by", [ANN, BOB, DOOR, SYSTEM])
def test_the_timeout_of_a_wait_is_nobodys_to_cancel(by: str) -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOB)
    (timer,) = house.state.timers
    house.refused("unknown_timer", i.CancelTimer(timer_id=timer), by=by)


def test_a_timer_needs_an_agent_in_an_open_task() -> None:
    house = House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS))
    house.refused("not_manager", tea(house.now), by=BOB)
    house.refused("unknown_agent", i.SetTimer(agent_id=AgentId("ghost"), task_id=T1, name="tea", due=1))
    house.refused("unknown_task", i.SetTimer(agent_id=ANN, task_id=TaskId("t9"), name="tea", due=1))
    house.refused("not_in_group", i.SetTimer(agent_id=ANN, task_id=T2, name="tea", due=1))
    house.refused("not_for_people", i.SetTimer(agent_id=HUE, task_id=T1, name="tea", due=1))


def test_only_the_house_fires_timers() -> None:
    house = House.furnished()
    house.do(tea(house.now), by=ANN)
    house.refused("too_early", i.FireTimer(timer_id=TEA), by=ANN)


def test_a_timer_that_comes_while_its_task_is_ending_wakes_nobody() -> None:
    house = House.furnished().queue(BOB)
    house.start(BOB)
    house.do(tea(house.now), by=ANN).do(i.CancelTask(task_id=T1))
    house.refused("unknown_task", tea(house.now), by=ANN)
    house.do(i.FireTimer(timer_id=TEA), by=SYSTEM)
    assert house.todo(ANN) == []


def test_a_timeout_is_in_the_state_with_its_deadline() -> None:
    house = House.furnished()
    waiting = house.ask_agent(ANN, BOB, timeout=500)[0]
    (timer,) = house.state.timers.values()
    assert (timer.due, timer.subject, timer.purpose) == (house.now + 500, waiting, "wait")
    house.run(BOB, reply(waiting, ANN))
    assert not house.state.timers


def test_a_persons_own_timeout_counts_too() -> None:
    house = House.furnished().queue(ANN).run(ANN, question(HUE, timeout=5))
    (waiting,) = house.state.waits
    house.later(5).fire(waiting)
    assert not house.state.mail
    assert house.agent(ANN).step_lock == ()


def test_the_step_that_is_asked_about_must_be_next_again() -> None:
    house = asking()
    house.refused("not_next", i.StartStep(step_id=StepId("ann#1"), terms=ASK, work=skill()), by=ANN)
    house.queue(ANN, skill("merge"), place="next").answer(ANN)
    assert house.next(ANN) == "ann#2"


def test_an_answer_does_not_hold_for_a_step_that_was_changed_since() -> None:
    house = House.furnished().queue(ANN, tool("shell", {"command": "ls"}))
    house.start(ANN, terms=ASK)
    house.answer(ANN)
    house.do(i.ModifyStep(step_id=StepId("ann#1"), work=tool("shell", {"command": "rm -r /"})), by=ANN)
    assert [event.why for event in house.happened(ApprovalVoided)] == ["the step was changed"]
    assert house.start(ANN, terms=ASK).state == "awaiting_approval"


RULE = "allow command git push"
GRANTS = StepTerms(effect="effectful", verdict="ask", question="push?", digest="git push", grant=RULE)


def asked(house: House, *agents: AgentId) -> list[ApprovalId]:
    """All of these want the same; what they are asked."""
    for agent in agents:
        house.queue(agent, tool("shell", {"script": "git push"}))
        house.start(agent, terms=GRANTS)
    return [one.approval_id for one in house.state.approvals.values()]


def test_a_yes_to_a_rule_is_one_for_all_who_have_asked_for_the_same() -> None:
    house = House.furnished()
    first, *_ = asked(house, ANN, BOB)
    house.do(i.AnswerApproval(approval_id=first, answer="approved", scope="run"))
    assert {one.state for one in house.state.approvals.values()} == {"approved"}
    assert house.state.grants[RULE].by == DOOR
    assert [house.next(agent) is not None for agent in (ANN, BOB)] == [True, True]


def test_a_yes_to_one_call_is_none_to_a_rule() -> None:
    house = House.furnished()
    first, second = asked(house, ANN, BOB)
    house.do(i.AnswerApproval(approval_id=first, answer="approved"))
    house.do(i.AnswerApproval(approval_id=second, answer="denied", scope="always"))
    assert not house.state.grants


def test_a_person_may_agree_to_another_rule_but_not_to_none() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, terms=evolve(GRANTS, grant=""))
    (name,) = house.state.approvals
    house.refused("no_rule", i.AnswerApproval(approval_id=name, answer="approved", scope="always"))
    house.do(i.AnswerApproval(approval_id=name, answer="approved", scope="always", grant="allow command git"))
    assert list(house.state.grants) == ["allow command git"]


def test_what_is_only_told_needs_nobody() -> None:
    house = House.furnished().queue(ANN)
    assert house.start(ANN, terms=evolve(GRANTS, verdict="notify")).state == "running"


def test_another_team_has_agreed_to_nothing() -> None:
    house = House.furnished()
    (name,) = asked(house, ANN)
    house.do(i.AnswerApproval(approval_id=name, answer="approved", scope="run"))
    house.do(i.ForkTeam(team_id=TeamId("fork"), origin=ForkOrigin(team_id=TeamId("team"), version=len(house.log))))
    assert not house.state.grants


def test_a_question_that_wants_words_is_answered_with_some() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, terms=StepTerms(effect="pure", verdict="ask", question="Which?", digest="q", words=True))
    (name,) = house.state.approvals
    house.refused("no_words", i.AnswerApproval(approval_id=name, answer="approved", reason=" "))
    house.do(i.AnswerApproval(approval_id=name, answer="approved", reason="blue"))
    assert house.state.approvals[name].reason == "blue"
    assert not house.state.threads[thread(ANN, T1)].notices, "the words are the step's, not a notice"
