"""How steps end: with a result, cancelled, interrupted or in doubt; and what follows from an end."""

from __future__ import annotations

import pytest

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, StepId, SubtaskId
from greenroom.core.rules import intents as i
from greenroom.core.rules.endings import MAX_RETRIES
from greenroom.core.state.approval import ApprovalAnswer, ApprovalAnswered
from greenroom.core.state.knowledge import Note
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step, StepCancelling, StepTerms, Work
from tests.core.house import (
    ANN,
    BOB,
    BOSS,
    CY,
    HUE,
    MINUTE,
    PIA,
    S1,
    T1,
    T2,
    House,
    plan,
    question,
    reply,
    skill,
    thread,
    tool,
)
from tests.core.rules.test_calls import ask, calls

NOBODY = i.SendMessage(task_id=T1, receiver=(AgentId("ghost"),), message="hello")


@pytest.mark.req("MAS-88")
def test_a_result_is_kept_with_what_it_cost() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.later(30).finish(ANN, result={"text": "done"}, spent=Amounts(tokens=7))
    (step,) = house.archived(Step)
    assert (step.state, step.result, step.spent) == (
        "finished",
        {"text": "done"},
        Amounts(tokens=7, steps=1, millis=30),
    )
    assert not house.state.steps


def test_a_finished_step_stays_finished() -> None:
    house = House.furnished().queue(ANN).run(ANN)
    house.refused("unknown_step", i.FinishStep(step_id=StepId("ann#1"), attempt=1), by=ANN)
    house.refused("unknown_step", i.ReleaseStep(step_id=StepId("ann#1"), attempt=1), by=ANN)


def test_a_stale_attempt_is_refused() -> None:
    house = House.furnished().queue(ANN)
    house.refused("stale_attempt", i.FinishStep(step_id=StepId("ann#1"), attempt=0), by=ANN)
    house.start(ANN)
    house.release(ANN).start(ANN)
    for attempt in (0, 1, 3):
        house.refused("stale_attempt", i.FinishStep(step_id=StepId("ann#1"), attempt=attempt), by=ANN)
        house.refused("stale_attempt", i.ReleaseStep(step_id=StepId("ann#1"), attempt=attempt), by=ANN)
    house.finish(ANN)


def test_nobody_finishes_somebody_elses_step() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.refused("not_yours", i.FinishStep(step_id=StepId("ann#1"), attempt=1), by=BOB)
    house.refused("not_yours", i.ReleaseStep(step_id=StepId("ann#1"), attempt=1), by=BOSS)


def test_a_clock_that_jumped_back_gives_no_negative_working_time() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.later(-MINUTE).finish(ANN)
    assert house.ended("ann#1").spent.millis == 0


# ---------------------------------------------------------------------------------------------- consequences


@pytest.mark.req("MAS-96")
def test_a_refused_consequence_costs_neither_the_result_nor_the_others() -> None:
    house = House.furnished().queue(ANN)
    house.run(ANN, i.PostNote(task_id=T1, content="one"), NOBODY, i.PostNote(task_id=T1, content="two"))
    assert house.ended("ann#1").state == "finished"
    assert [note.content for note in house.archived(Note)] == ["one", "two"]
    assert house.codes() == ["unknown_receiver"]
    (notice,) = house.state.threads[thread(ANN, T1)].notices
    assert notice.startswith("SendMessage was refused.")


def test_an_agent_that_was_refused_reads_why_and_gets_another_go() -> None:
    house = House.furnished().queue(ANN, skill("converse", "write to the ghost")).run(ANN, NOBODY)
    step = house.last(ANN)
    assert (step.work.text_content, step.retry, step.cause) == ("write to the ghost", 1, "ann#1")
    house.run(ANN)
    assert house.state.threads[thread(ANN, T1)].notices == ()


def test_after_some_goes_it_is_over() -> None:
    house = House.furnished().queue(ANN)
    for _ in range(1 + MAX_RETRIES):
        house.run(ANN, NOBODY)
    assert house.todo(ANN) == []


def test_who_has_more_to_do_anyway_gets_no_extra_go() -> None:
    house = House.furnished().queue(ANN, skill(), skill("merge")).run(ANN, NOBODY)
    assert house.todo(ANN) == ["merge"]


def test_who_only_owes_an_answer_besides_gets_another_go() -> None:
    house = House.furnished().queue(PIA, skill("converse", "write to the ghost"))
    house.start(PIA)
    waiting = house.ask_agent(BOB, PIA)[0]
    house.finish(PIA, NOBODY)
    steps = [house.state.steps[name] for name in house.agent(PIA).todo]
    assert [(step.answers, step.retry) for step in steps] == [(waiting, 0), (None, 1)]


def test_a_tool_gets_no_other_go() -> None:
    house = House.furnished().queue(ANN, tool("shell", {})).run(ANN, NOBODY)
    assert house.todo(ANN) == []


def test_another_go_at_an_answer_comes_before_everything_else() -> None:
    house = House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS, group=(PIA,)))
    waiting = house.ask_agent(BOB, PIA)[0]
    house.queue(PIA, skill("merge"), task=T2).run(PIA, NOBODY)
    assert house.todo(PIA) == ["send_message", "merge"]
    step = house.state.steps[house.agent(PIA).todo[0]]
    assert (step.answers, step.jumped, step.retry) == (waiting, True, 1)


def test_a_notice_is_read_by_the_next_skill_and_not_swallowed_by_a_tool() -> None:
    house = House.furnished().queue(ANN)
    house.run(ANN, NOBODY, i.QueueSteps(agent_id=ANN, works=(tool("shell", {}), skill())))
    house.run(ANN)
    assert len(house.state.threads[thread(ANN, T1)].notices) == 1
    house.run(ANN)
    assert house.state.threads[thread(ANN, T1)].notices == ()


def test_a_notice_stays_until_a_step_that_saw_it_has_finished() -> None:
    house = House.furnished().queue(ANN, skill(), skill(), skill()).run(ANN, NOBODY)
    house.start(ANN)
    house.finish(ANN, NOBODY, outcome="failed")
    assert len(house.state.threads[thread(ANN, T1)].notices) == 2
    house.run(ANN)
    assert house.state.threads[thread(ANN, T1)].notices == ()


def test_consequences_after_the_end_of_the_task_leave_no_notice_anywhere() -> None:
    house = House.furnished().queue(BOSS).run(BOSS, i.FinishTask(task_id=T1), i.PostNote(task_id=T1, content="late"))
    assert house.codes() == []
    assert not house.state.threads


def test_an_agent_may_remove_itself_in_its_own_step() -> None:
    second = AgentId("second")
    house = House.furnished().do(i.AddAgent(agent_id=second, spec=AgentSpec(name="S", manager=True)))
    house.do(i.AddParticipants(task_id=T1, agents=(second,)))
    waiting = house.ask_agent(ANN, second)[0]
    house.run(second, i.RemoveAgent(agent_id=second), i.PostNote(task_id=T1, content="bye"))
    assert second not in house.state.agents
    assert house.released(waiting) == "agent_gone"
    assert house.codes() == []


# ---------------------------------------------------------------------------------------------- obligations


def test_an_answer_that_asked_somebody_else_first_comes_later() -> None:
    house = House.furnished()
    first = house.ask_agent(ANN, BOB)[0]
    house.run(BOB, question(CY, stage=None))
    second = house.agent(BOB).step_lock[0]
    step = house.last(BOB)
    assert (step.answers, step.after, step.jumped) == (first, (second,), True)
    assert house.next(BOB) is None
    house.run(CY, reply(second, BOB))
    assert house.senders(BOB) == ["from: cy", "from: ann"]
    assert house.next(BOB) == house.agent(BOB).todo[0]
    house.run(BOB).run(BOB, reply(first, ANN))
    assert house.released(first) == "reply"


def test_steps_on_the_way_to_an_answer_wait_for_what_was_asked_before_them() -> None:
    house = House.furnished()
    first = house.ask_agent(ANN, BOB)[0]
    house.run(BOB, question(CY), i.QueueSteps(agent_id=BOB, works=(skill(), skill("reflection")), task_id=T1))
    second = house.agent(BOB).step_lock[0]
    assert [(house.state.steps[one].answers, house.state.steps[one].after) for one in house.agent(BOB).todo] == [
        (first, (second,)),
        (first, (second,)),
    ]
    assert house.next(BOB) is None


def test_a_message_that_was_handled_without_an_answer_lets_its_waiter_go() -> None:
    house = House.furnished()
    waiting = house.ask_agent(ANN, BOB)[0]
    house.run(BOB)
    assert house.released(waiting) == "unanswered"
    assert house.texts(ANN) == ["bob handled the message without answering it (message ann>1)."]


def test_a_debtor_that_hands_its_debt_to_nobody_releases_it_once() -> None:
    house = House.furnished()
    waiting = house.ask_agent(ANN, BOB)[0]
    house.run(BOB, i.QueueSteps(agent_id=BOB, works=(skill(), skill()), task_id=T1))
    house.run(BOB)
    assert house.released(waiting) is None
    house.run(BOB)
    assert house.released(waiting) == "unanswered"


def test_an_answer_of_a_stage_still_belongs_to_it_when_it_comes_later() -> None:
    house = House.furnished(stages=(plan(("one", CY)),)).assign()
    house.queue(ANN).run(ANN, question(BOB, stage=S1))
    house.run(BOB, question(CY))
    assert house.last(BOB).stage_id == S1


def test_another_go_at_an_answer_waits_for_what_was_asked_in_the_first_one() -> None:
    house = House.furnished()
    first = house.ask_agent(ANN, BOB)[0]
    house.run(BOB, question(CY), NOBODY)
    step = house.last(BOB)
    assert (step.answers, step.after, step.retry) == (first, house.agent(BOB).step_lock, 1)
    assert house.next(BOB) is None


def test_a_step_that_nobody_answers_goes_back_and_its_task_pauses_until_somebody_has_seen_to_it() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    step = house.state.steps[StepId("ann#1")]
    release = i.ReleaseStep(step_id=step.step_id, attempt=1, why="no credit left", spent=Amounts(tokens=3), pause=True)
    house.do(release, by=ANN)
    assert house.state.tasks[T1].paused == "provider: no credit left"
    assert house.state.steps[step.step_id].state == "init"
    assert house.state.budgets[TEAM_BUDGET].spent.tokens == 3
    house.do(i.ResumeTask(task_id=T1))
    house.start(ANN)
    assert house.state.steps[step.step_id].attempt == 2


def test_a_step_that_is_begun_anew_pauses_nothing_and_costs_what_was_reserved_unless_told() -> None:
    house = House.furnished().queue(ANN)
    for told in (None, Amounts(tokens=-5)):
        house.start(ANN, terms=StepTerms(effect="model", needs=Amounts(tokens=40)))
        attempt = house.state.steps[StepId("ann#1")].attempt
        house.do(i.ReleaseStep(step_id=StepId("ann#1"), attempt=attempt, spent=told), by=ANN)
    assert house.state.tasks[T1].paused is None
    assert house.state.budgets[TEAM_BUDGET].spent.tokens == 80


def test_a_task_that_is_paused_already_keeps_its_reason() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.do(i.PauseTask(task_id=T1, why="lunch"))
    house.do(i.ReleaseStep(step_id=StepId("ann#1"), attempt=1, why="no answer", pause=True), by=ANN)
    assert house.state.tasks[T1].paused == "lunch"


HERE = i.Interrupt(thread_id=thread(ANN, T1))


def test_what_runs_is_ended_and_each_call_gets_its_one_result() -> None:
    house = House.furnished().queue(ANN).run(ANN, calls(3))
    house.start(ANN)
    house.do(HERE)
    assert [one.then for one in house.happened(StepCancelling)] == ["cancelled"]
    house.release(ANN)
    ended = [house.ended(f"ann#{number}").state for number in (2, 3, 4, 5)]
    assert ended == ["cancelled"] * 4
    assert house.todo(ANN) == []
    assert house.state.threads[thread(ANN, T1)].open_calls == 0


def test_the_conversation_goes_on_with_what_is_said_next() -> None:
    house = House.furnished().queue(ANN).run(ANN, calls(1)).do(HERE).queue(ANN, skill("converse", "do this instead"))
    assert house.start(ANN).work.text_content == "do this instead"


def test_other_conversations_of_the_agent_are_not_touched() -> None:
    house = House.furnished().queue(ANN)
    house.ask_agent(BOB, ANN)
    house.do(i.Interrupt(thread_id=thread(BOB, T1)))
    assert house.next(ANN) is not None


def test_whom_it_waited_for_need_not_go_on_and_nobody_is_locked() -> None:
    house = House.furnished().queue(ANN).run(ANN, *ask("bob")).do(HERE)
    assert house.agent(ANN).step_lock == ()
    assert house.todo(BOB) == []
    assert house.todo(ANN) == []


def test_nobody_interrupts_another_agent_and_only_what_is_there() -> None:
    house = House.furnished().queue(ANN)
    house.refused("not_yours", HERE, by=BOB)
    house.refused("unknown_thread", i.Interrupt(thread_id=thread(ANN, "nowhere")))


def test_what_is_left_of_an_attempt_is_kept_only_if_somebody_cancelled_it() -> None:
    house = House.furnished().queue(ANN)
    step = house.start(ANN)
    left = i.FinishStep(step_id=step.step_id, attempt=1, outcome="cancelled", result={"text": "Half"})
    house.refused("not_cancelled", left, by=ANN)
    house.do(HERE).do(left, by=ANN)
    ended = house.ended(step.step_id)
    assert (ended.state, ended.result) == ("cancelled", {"text": "Half"})


ASK = StepTerms(effect="effectful", verdict="ask", question="delete it?", digest="rm -r x")
DENY = StepTerms(effect="effectful", verdict="deny", rule="no crawling")


def asking() -> House:
    house = House.furnished().queue(ANN)
    house.start(ANN, terms=ASK)
    return house


def planned(*works: Work) -> House:
    """Pia plans these steps in a stage."""
    house = House.furnished(stages=(plan(("one", PIA)),)).assign()
    return house.run(PIA, i.QueueSteps(agent_id=PIA, works=works))


def given(*works: Work) -> House:
    """A person gives her these steps, and nothing to look back with."""
    house = House.furnished(stages=(plan(("one", PIA)),)).assign().run(PIA)
    return house.do(i.QueueSteps(agent_id=PIA, works=works, thread_id=thread(PIA, "t1.s1.1")))


def test_who_plans_reflects_on_what_the_policy_denies() -> None:
    house = given(tool("crawl", {"u": 1}))
    house.start(PIA, terms=DENY)
    assert house.todo(PIA) == ["reflection"]
    assert house.texts(PIA) == ["Step pia#2 (crawl) was not run. Not permitted: no crawling."]


def test_who_plans_reflects_on_what_a_person_denies_and_reads_why() -> None:
    house = given(tool("crawl", {"u": 1}))
    house.start(PIA, terms=ASK)
    answer = i.AnswerApproval(approval_id=house.question(PIA).approval_id, answer="denied", reason="Too slow.")
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
    house.do(i.RemoveStep(step_id=house.agent(PIA).todo[0]), by=HUE)
    assert house.codes() == []


@pytest.mark.parametrize("answer", ["approved", "denied"])
def test_the_reason_a_person_gives_is_kept_with_the_answer(answer: ApprovalAnswer) -> None:
    house = asking()
    approval = house.question(ANN).approval_id
    house.do(i.AnswerApproval(approval_id=approval, answer=answer, reason="only once"), by=HUE)
    assert [event.reason for event in house.happened(ApprovalAnswered)] == ["only once"]


def test_what_a_person_says_with_a_yes_is_read_by_the_agent() -> None:
    house = asking()
    house.do(
        i.AnswerApproval(approval_id=house.question(ANN).approval_id, answer="approved", reason="be quick"), by=HUE
    )
    assert house.question(ANN).reason == "be quick"
    assert house.codes() == ["approved"]


def test_a_step_that_would_end_its_subtask_after_a_cancellation_is_cancelled() -> None:
    plan = i.StagePlan(intention="x", subtasks=(i.SubtaskPlan(name="one", duty="do", agent=ANN),))
    for ends, state in (
        ((i.FinishSubtask(subtask_id=SubtaskId("t1.s1.1"), stage_id=S1),), "cancelled"),
        ((), "finished"),
    ):
        house = House.furnished(stages=(plan,)).assign()
        step = house.start(ANN)
        house.do(i.CancelTask(task_id=T1)).finish(ANN, *ends)
        ended = next(one for one in house.archived(Step) if one.step_id == step.step_id)
        assert (ended.state, house.archived(Stage)[-1].subtasks[0].state) == (state, "cancelled")
