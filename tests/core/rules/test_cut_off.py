"""Steps that end without a result: cut off, recovered, cancelled, paused."""

from typing import Literal

import pytest

from greenroom.core.base.amounts import Amounts, Limits
from greenroom.core.base.ids import AgentId, StepId, task_budget
from greenroom.core.rules import intents as i
from greenroom.core.state.knowledge import Note
from greenroom.core.state.step import Effect, PreparedEffect, Step, StepCancelling, StepInterrupted, StepTerms
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
    skill,
    tool,
)

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
    file = PreparedEffect(kind="file", key="a", before="0", after="1")
    house.do(i.PrepareEffect(step_id=StepId("ann#1"), attempt=1, prepared=(file,)), by=ANN).release(ANN)
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
    assert house.last(agent).goes_on, "to look at what is in doubt begins nothing"


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
    house.start(ANN, terms=StepTerms(effect=effect, needs=Amounts(tokens=40)))
    house.later(MINUTE).do(i.Recover(epoch=1, owner="me"), by=SYSTEM)
    assert house.agent(ANN).running is None
    if state == "init":
        assert house.state.steps[StepId("ann#1")].state == "init"
    else:
        assert house.ended("ann#1").state == "uncertain"
    assert house.state.budgets[task_budget(T1)].spent == Amounts(tokens=40, steps=1)


def test_what_was_being_cancelled_is_over_after_a_restart() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, "effectful")
    house.do(i.CancelTask(task_id=T1)).do(i.Recover(epoch=1, owner="me"), by=SYSTEM)
    assert house.ended("ann#1").state == "cancelled"
    assert "may have happened in part" in house.ended("ann#1").error
    assert not house.state.tasks


@pytest.mark.parametrize("epoch", [0, 3, 4])
def test_a_stale_owner_is_refused(epoch: int) -> None:
    house = House.furnished().do(i.Recover(epoch=4, owner="me"), by=SYSTEM)
    house.refused("stale_epoch", i.Recover(epoch=epoch, owner="old"), by=SYSTEM)
    house.refused("stale_epoch", i.Recover(epoch=5, owner="ann"), by=ANN)


def test_a_new_owner_is_written_down() -> None:
    house = House.furnished().do(i.Recover(epoch=2, owner="me"), by=SYSTEM)
    assert [(event.epoch, event.owner) for event in house.happened(OwnerChanged)] == [(2, "me")]
    assert house.state.team.epoch == 2


# ---------------------------------------------------------------------------------------------- cancel, pause


def test_cancelling_ends_queued_steps_at_once_and_running_ones_when_they_are_dead() -> None:
    house = House.furnished().queue(ANN, skill(), skill()).queue(BOB)
    house.start(ANN)
    house.do(i.CancelTask(task_id=T1))
    assert (house.ended("ann#2").state, house.ended("bob#1").state) == ("cancelled", "cancelled")
    assert house.running(ANN).state == "cancelling"
    assert house.task().state == "cancelling"
    house.release(ANN)
    assert house.ended("ann#1").state == "cancelled"
    assert not house.state.tasks


def test_a_result_that_comes_in_the_last_moment_is_kept_but_asks_for_nothing() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.do(i.CancelTask(task_id=T1)).finish(ANN, i.PostNote(task_id=T1, content="late"), result={"text": "paid"})
    assert house.archived(Step)[-1].result == {"text": "paid"}
    assert house.archived(Note) == []
    assert not house.state.tasks


def test_a_step_that_finishes_while_it_is_being_paused_has_its_consequences() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.do(i.PauseTask(task_id=T1, now=True)).finish(ANN, i.PostNote(task_id=T1, content="just in time"))
    assert len(house.archived(Note)) == 1


def test_pausing_now_queues_what_ran_again_and_cancelling_overrules_it() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.do(i.PauseTask(task_id=T1, now=True))
    house.do(i.PauseTask(task_id=T1, now=True))
    assert house.happened(StepCancelling) == []
    house.do(i.CancelTask(task_id=T1))
    assert house.happened(StepCancelling)[0].then == "cancelled"
    house.release(ANN)
    assert house.ended("ann#1").state == "cancelled"


def test_an_interrupted_step_runs_again_after_the_pause() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.do(i.PauseTask(task_id=T1, now=True)).release(ANN)
    assert house.happened(StepInterrupted)[0].why == "interrupted"
    assert house.next(ANN) is None
    house.do(i.ResumeTask(task_id=T1))
    assert house.start(ANN).attempt == 2


def test_an_effect_that_a_pause_cut_off_is_uncertain() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, "effectful")
    house.do(i.PauseTask(task_id=T1, now=True)).release(ANN)
    assert house.ended("ann#1").state == "uncertain"


def test_cancelling_a_task_in_which_everybody_waits_for_everybody_ends_it() -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOB, HUE)
    house.ask_agent(CY, ANN)
    house.do(i.CancelTask(task_id=T1))
    assert not house.state.tasks
    assert not house.state.waits
    assert not house.state.mail
    assert not house.state.timers
    assert not house.state.threads


def test_a_task_is_not_kept_alive_by_telling_a_waiter_that_it_is_over() -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOB)
    house.queue(CY)
    house.start(CY)
    house.do(i.CancelTask(task_id=T1))
    assert house.todo(ANN) == []
    house.release(CY)
    assert not house.state.tasks


def test_a_task_that_ends_in_the_step_of_a_debtor_ends() -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOSS)
    house.queue(CY)
    house.start(CY)
    house.run(BOSS, question(BOB), i.FinishTask(task_id=T1))
    assert house.todo(BOSS) == []
    house.release(CY)
    assert not house.state.tasks


def test_what_is_being_cancelled_already_is_not_cancelled_twice() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign()
    house.start(ANN)
    house.do(i.FinishStage(stage_id=S1)).do(i.CancelTask(task_id=T1))
    assert house.happened(StepCancelling) == []
    house.release(ANN)
    assert not house.state.tasks


def test_letters_and_timers_of_a_task_go_with_it_and_those_of_others_stay() -> None:
    house = House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS, group=(ANN, HUE)))
    for task in (T1, T2):
        house.do(
            i.SendMessage(task_id=task, receiver=(HUE,), message="when?", need_reply=True, sender=ANN),
            i.SetTimer(agent_id=ANN, task_id=task, name=f"tea {task}", due=house.now),
        )
    house.do(i.CancelTask(task_id=T1))
    assert [letter.task_id for letter in house.state.mail.values()] == [T2]
    assert [timer.task_id for timer in house.state.timers.values()] == [T2]


def test_the_time_until_the_old_owner_was_last_heard_of_counts_and_the_downtime_does_not() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, "model")
    house.later(9 * MINUTE).do(i.PostNote(task_id=T1, content="still here"))
    house.later(60 * MINUTE).do(i.Recover(epoch=1, owner="me"), by=SYSTEM)
    (cut,) = house.happened(StepInterrupted)
    assert cut.spent.millis == 9 * MINUTE
