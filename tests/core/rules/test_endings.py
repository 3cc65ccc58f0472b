"""How steps end: with a result, cancelled, interrupted or in doubt; and what follows from an end."""

from typing import Literal

import pytest

from greenroom.core.base.amounts import Amounts, Limits
from greenroom.core.base.ids import AgentId, StepId, SubtaskId, task_budget
from greenroom.core.rules.endings import RETRIES
from greenroom.core.rules.intents import (
    AddAgent,
    AddParticipants,
    AddTask,
    CancelTask,
    FinishStage,
    FinishStep,
    FinishSubtask,
    FinishTask,
    PauseTask,
    PostNote,
    PrepareEffect,
    QueueSteps,
    Recover,
    ReleaseStep,
    RemoveAgent,
    ResumeTask,
    SendMessage,
    UpdateStageAgentState,
)
from greenroom.core.state.agent import AgentSpec
from greenroom.core.state.note import Note
from greenroom.core.state.step import Effect, Prepared, Step, StepCancelling, StepInterrupted, Terms
from greenroom.core.state.team import OwnerChanged
from tests.core.house import (
    ANN,
    BOB,
    BOSS,
    CY,
    HUE,
    MINUTE,
    PIA,
    S1,
    SYSTEM,
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

NOBODY = SendMessage(task_id=T1, receiver=(AgentId("ghost"),), message="hello")


@pytest.mark.req("MAS-88", "MAS-221")
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
    assert not house.world.steps


def test_a_finished_step_stays_finished() -> None:
    house = House.furnished().queue(ANN).run(ANN)
    house.refused("unknown_step", FinishStep(step_id=StepId("ann#1"), attempt=1), by=ANN)
    house.refused("unknown_step", ReleaseStep(step_id=StepId("ann#1"), attempt=1), by=ANN)


def test_a_stale_attempt_is_refused() -> None:
    house = House.furnished().queue(ANN)
    house.refused("stale_attempt", FinishStep(step_id=StepId("ann#1"), attempt=0), by=ANN)
    house.start(ANN)
    house.release(ANN).start(ANN)
    for attempt in (0, 1, 3):
        house.refused("stale_attempt", FinishStep(step_id=StepId("ann#1"), attempt=attempt), by=ANN)
        house.refused("stale_attempt", ReleaseStep(step_id=StepId("ann#1"), attempt=attempt), by=ANN)
    house.finish(ANN)


def test_nobody_finishes_somebody_elses_step() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.refused("not_yours", FinishStep(step_id=StepId("ann#1"), attempt=1), by=BOB)
    house.refused("not_yours", ReleaseStep(step_id=StepId("ann#1"), attempt=1), by=BOSS)


def test_a_clock_that_jumped_back_gives_no_negative_working_time() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.later(-MINUTE).finish(ANN)
    assert house.ended("ann#1").spent.millis == 0


# ---------------------------------------------------------------------------------------------- consequences


@pytest.mark.req("MAS-96")
def test_a_refused_consequence_costs_neither_the_result_nor_the_others() -> None:
    house = House.furnished().queue(ANN)
    house.run(ANN, PostNote(task_id=T1, content="one"), NOBODY, PostNote(task_id=T1, content="two"))
    assert house.ended("ann#1").state == "finished"
    assert [note.content for note in house.archived(Note)] == ["one", "two"]
    assert house.codes() == ["unknown_receiver"]
    (notice,) = house.world.threads[thread(ANN, T1)].notices
    assert notice.startswith("SendMessage was refused.")


@pytest.mark.parametrize(
    ("consequence", "code"),
    [
        (SendMessage(task_id=T1, receiver=(BOB,), message="x", sender=CY), "not_yours"),
        (QueueSteps(agent_id=BOB, works=(skill(),), task_id=T1), "not_yours"),
        (AddAgent(agent_id=AgentId("new"), spec=AgentSpec(name="x")), "not_manager"),
        (CancelTask(task_id=T1), "not_manager"),
        (FinishStage(stage_id=S1), "not_manager"),
        (UpdateStageAgentState(stage_id=S1, agent_id=BOB, state="failed"), "not_manager"),
        (FinishSubtask(subtask_id=SubtaskId("t1.s1.1"), stage_id=S1), "not_manager"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_no_reply_of_a_model_acts_for_somebody_else(consequence: SendMessage, code: str) -> None:
    house = House.furnished(stages=(plan(("one", BOB)),)).assign().queue(ANN).run(ANN, consequence)
    assert house.codes() == [code]


def test_an_agent_that_was_refused_reads_why_and_gets_another_go() -> None:
    house = House.furnished().queue(ANN, skill("converse", "write to the ghost")).run(ANN, NOBODY)
    step = house.last(ANN)
    assert (step.work.text_content, step.retry, step.cause) == ("write to the ghost", 1, "ann#1")
    house.run(ANN)
    assert house.world.threads[thread(ANN, T1)].notices == ()


def test_after_some_goes_it_is_over() -> None:
    house = House.furnished().queue(ANN)
    for _ in range(1 + RETRIES):
        house.run(ANN, NOBODY)
    assert house.todo(ANN) == []


def test_who_has_more_to_do_anyway_gets_no_extra_go() -> None:
    house = House.furnished().queue(ANN, skill(), skill("merge")).run(ANN, NOBODY)
    assert house.todo(ANN) == ["merge"]


def test_a_tool_gets_no_other_go() -> None:
    house = House.furnished().queue(ANN, tool("shell", {})).run(ANN, NOBODY)
    assert house.todo(ANN) == []


def test_another_go_at_an_answer_comes_before_everything_else() -> None:
    house = House.furnished().do(AddTask(name="side", intention="x", manager=BOSS, group=(PIA,)))
    waiting = house.ask_agent(BOB, PIA)[0]
    house.queue(PIA, skill("merge"), task=T2).run(PIA, NOBODY)
    assert house.todo(PIA) == ["send_message", "merge"]
    step = house.world.steps[house.agent(PIA).todo[0]]
    assert (step.answers, step.jumped, step.retry) == (waiting, True, 1)


def test_a_notice_is_read_by_the_next_skill_and_not_swallowed_by_a_tool() -> None:
    house = House.furnished().queue(ANN)
    house.run(ANN, NOBODY, QueueSteps(agent_id=ANN, works=(tool("shell", {}), skill())))
    house.run(ANN)
    assert len(house.world.threads[thread(ANN, T1)].notices) == 1
    house.run(ANN)
    assert house.world.threads[thread(ANN, T1)].notices == ()


def test_a_notice_stays_until_a_step_that_saw_it_has_finished() -> None:
    house = House.furnished().queue(ANN, skill(), skill(), skill()).run(ANN, NOBODY)
    house.start(ANN)
    house.finish(ANN, NOBODY, outcome="failed")
    assert len(house.world.threads[thread(ANN, T1)].notices) == 2
    house.run(ANN)
    assert house.world.threads[thread(ANN, T1)].notices == ()


def test_consequences_after_the_end_of_the_task_leave_no_notice_anywhere() -> None:
    house = House.furnished().queue(BOSS).run(BOSS, FinishTask(task_id=T1), PostNote(task_id=T1, content="late"))
    assert house.codes() == []
    assert not house.world.threads


def test_an_agent_may_remove_itself_in_its_own_step() -> None:
    second = AgentId("second")
    house = House.furnished().do(AddAgent(agent_id=second, spec=AgentSpec(name="S", manager=True)))
    house.do(AddParticipants(task_id=T1, agents=(second,)))
    waiting = house.ask_agent(ANN, second)[0]
    house.run(second, RemoveAgent(agent_id=second), PostNote(task_id=T1, content="bye"))
    assert second not in house.world.agents
    assert house.released(waiting) == "agent_gone"
    assert house.codes() == []


# ---------------------------------------------------------------------------------------------- cut off


@pytest.mark.parametrize("effect", ["pure", "model", "keyed"])
def test_what_may_run_again_is_the_next_step_again(effect: Effect) -> None:
    house = House.furnished().queue(ANN, skill(), skill("merge"))
    house.start(ANN, effect)
    house.release(ANN)
    assert house.agent(ANN).todo == ("ann#1", "ann#2")
    assert house.start(ANN, effect).attempt == 2


def test_what_was_prepared_stays_known_to_the_next_attempt() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, "keyed")
    file = Prepared(kind="file", key="a", before="0", after="1")
    house.do(PrepareEffect(step_id=StepId("ann#1"), attempt=1, prepared=(file,)), by=ANN).release(ANN)
    assert house.start(ANN, "keyed").prepared == (file,)


@pytest.mark.parametrize(("agent", "executor"), [(ANN, "converse"), (PIA, "reflection")])
def test_an_effect_that_was_cut_off_is_uncertain_and_never_run_again(agent: AgentId, executor: str) -> None:
    house = House.furnished().queue(agent, tool("shell", {}))
    house.start(agent, "effectful")
    house.release(agent)
    assert house.ended(f"{agent}#1").state == "uncertain"
    assert house.task().uncertain == (f"{agent}#1",)
    assert house.codes() == ["uncertain"]
    assert house.todo(agent) == [executor]
    assert "It was not run again" in house.texts(agent)[0]


def test_who_reads_on_anyway_gets_no_extra_step_for_a_doubt() -> None:
    house = House.furnished().queue(ANN, tool("shell", {}), skill("merge"))
    house.start(ANN, "effectful")
    house.release(ANN)
    assert house.todo(ANN) == ["merge"]


def test_an_attempt_may_say_itself_that_it_does_not_know() -> None:
    house = House.furnished().queue(ANN, tool("shell", {}))
    house.start(ANN, "effectful")
    house.finish(ANN, outcome="uncertain")
    assert house.task().uncertain == ("ann#1",)
    assert house.codes() == ["uncertain"]


def test_a_doubtful_answer_lets_its_waiter_go() -> None:
    house = House.furnished()
    waiting = house.ask_agent(BOB, ANN)[0]
    house.start(ANN, "effectful")
    house.release(ANN)
    assert house.released(waiting) == "unanswered"


# ---------------------------------------------------------------------------------------------- recovery


@pytest.mark.parametrize(
    ("effect", "state"), [("pure", "init"), ("model", "init"), ("keyed", "init"), ("effectful", "uncertain")]
)
def test_a_new_owner_settles_what_ran_by_its_effect_class(effect: Effect, state: Literal["init", "uncertain"]) -> None:
    house = House.furnished(limits=Limits(tokens=100)).queue(ANN, tool("shell", {}))
    house.start(ANN, terms=Terms(effect=effect, needs=Amounts(tokens=40)))
    house.later(MINUTE).do(Recover(epoch=1, owner="me"), by=SYSTEM)
    assert house.agent(ANN).running is None
    if state == "init":
        assert house.world.steps[StepId("ann#1")].state == "init"
    else:
        assert house.ended("ann#1").state == "uncertain"
    assert house.world.budgets[task_budget(T1)].spent == Amounts(tokens=40, steps=1)


def test_what_was_being_cancelled_is_over_after_a_restart() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, "effectful")
    house.do(CancelTask(task_id=T1)).do(Recover(epoch=1, owner="me"), by=SYSTEM)
    assert house.ended("ann#1").state == "cancelled"
    assert "may have happened in part" in house.ended("ann#1").error
    assert not house.world.tasks


@pytest.mark.parametrize("epoch", [0, 3, 4])
def test_a_stale_owner_is_refused(epoch: int) -> None:
    house = House.furnished().do(Recover(epoch=4, owner="me"), by=SYSTEM)
    house.refused("stale_epoch", Recover(epoch=epoch, owner="old"), by=SYSTEM)
    house.refused("stale_epoch", Recover(epoch=5, owner="ann"), by=ANN)


def test_a_new_owner_is_written_down() -> None:
    house = House.furnished().do(Recover(epoch=2, owner="me"), by=SYSTEM)
    assert [(event.epoch, event.owner) for event in house.happened(OwnerChanged)] == [(2, "me")]
    assert house.world.team.epoch == 2


# ---------------------------------------------------------------------------------------------- cancel, pause


def test_cancelling_ends_queued_steps_at_once_and_running_ones_when_they_are_dead() -> None:
    house = House.furnished().queue(ANN, skill(), skill()).queue(BOB)
    house.start(ANN)
    house.do(CancelTask(task_id=T1))
    assert (house.ended("ann#2").state, house.ended("bob#1").state) == ("cancelled", "cancelled")
    assert house.running(ANN).state == "cancelling"
    assert house.task().state == "cancelling"
    house.release(ANN)
    assert house.ended("ann#1").state == "cancelled"
    assert not house.world.tasks


def test_a_result_that_comes_in_the_last_moment_is_kept_but_asks_for_nothing() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.do(CancelTask(task_id=T1)).finish(ANN, PostNote(task_id=T1, content="late"), result={"text": "paid"})
    assert house.archived(Step)[-1].result == {"text": "paid"}
    assert house.archived(Note) == []
    assert not house.world.tasks


def test_a_step_that_finishes_while_it_is_being_paused_has_its_consequences() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.do(PauseTask(task_id=T1, now=True)).finish(ANN, PostNote(task_id=T1, content="just in time"))
    assert len(house.archived(Note)) == 1


def test_pausing_now_queues_what_ran_again_and_cancelling_overrules_it() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.do(PauseTask(task_id=T1, now=True))
    house.do(PauseTask(task_id=T1, now=True))
    assert house.happened(StepCancelling) == []
    house.do(CancelTask(task_id=T1))
    assert house.happened(StepCancelling)[0].then == "cancelled"
    house.release(ANN)
    assert house.ended("ann#1").state == "cancelled"


def test_an_interrupted_step_runs_again_after_the_pause() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.do(PauseTask(task_id=T1, now=True)).release(ANN)
    assert house.happened(StepInterrupted)[0].why == "interrupted"
    assert house.next(ANN) is None
    house.do(ResumeTask(task_id=T1))
    assert house.start(ANN).attempt == 2


def test_an_effect_that_a_pause_cut_off_is_uncertain() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, "effectful")
    house.do(PauseTask(task_id=T1, now=True)).release(ANN)
    assert house.ended("ann#1").state == "uncertain"


def test_cancelling_a_task_in_which_everybody_waits_for_everybody_ends_it() -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOB, HUE)
    house.ask_agent(CY, ANN)
    house.do(CancelTask(task_id=T1))
    assert not house.world.tasks
    assert not house.world.waits
    assert not house.world.mail
    assert not house.world.timers
    assert not house.world.threads


def test_a_task_is_not_kept_alive_by_telling_a_waiter_that_it_is_over() -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOB)
    house.queue(CY)
    house.start(CY)
    house.do(CancelTask(task_id=T1))
    assert house.todo(ANN) == []
    house.release(CY)
    assert not house.world.tasks


def test_a_task_that_ends_in_the_step_of_a_debtor_ends() -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOSS)
    house.queue(CY)
    house.start(CY)
    house.run(BOSS, question(BOB), FinishTask(task_id=T1))
    assert house.todo(BOSS) == []
    house.release(CY)
    assert not house.world.tasks


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
    house.run(BOB).run(BOB, reply(first, ANN))
    assert house.released(first) == "reply"


def test_steps_on_the_way_to_an_answer_wait_for_what_was_asked_before_them() -> None:
    house = House.furnished()
    first = house.ask_agent(ANN, BOB)[0]
    house.run(BOB, question(CY), QueueSteps(agent_id=BOB, works=(skill(), skill("reflection")), task_id=T1))
    second = house.agent(BOB).step_lock[0]
    assert [(house.world.steps[one].answers, house.world.steps[one].after) for one in house.agent(BOB).todo] == [
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
    house.run(BOB, QueueSteps(agent_id=BOB, works=(skill(), skill()), task_id=T1))
    house.run(BOB)
    assert house.released(waiting) is None
    house.run(BOB)
    assert house.released(waiting) == "unanswered"


def test_an_answer_of_a_stage_still_belongs_to_it_when_it_comes_later() -> None:
    house = House.furnished(stages=(plan(("one", CY)),)).assign()
    house.queue(ANN).run(ANN, question(BOB, stage=S1))
    house.run(BOB, question(CY))
    assert house.last(BOB).stage_id == S1
