"""Interrupting a turn: what ran and what waited ends, the conversation goes on."""

from greenroom.core.rules.intents import FinishStep, Interrupt
from greenroom.core.state.step import StepCancelling
from tests.core.house import ANN, BOB, T1, House, skill, thread
from tests.core.rules.test_answered_calls import ask
from tests.core.rules.test_calls import calls

HERE = Interrupt(thread_id=thread(ANN, T1))


def test_what_runs_is_ended_and_each_call_gets_its_one_result() -> None:
    house = House.furnished().queue(ANN).run(ANN, calls(3))
    house.start(ANN)
    house.do(HERE)
    assert [one.then for one in house.happened(StepCancelling)] == ["cancelled"]
    house.release(ANN)
    ended = [house.ended(f"ann#{number}").state for number in (2, 3, 4, 5)]
    assert ended == ["cancelled"] * 4
    assert house.todo(ANN) == []
    assert house.world.threads[thread(ANN, T1)].open_calls == 0


def test_the_conversation_goes_on_with_what_is_said_next() -> None:
    house = House.furnished().queue(ANN).run(ANN, calls(1)).do(HERE).queue(ANN, skill("converse", "do this instead"))
    assert house.start(ANN).work.text_content == "do this instead"


def test_other_conversations_of_the_agent_are_not_touched() -> None:
    house = House.furnished().queue(ANN)
    house.ask_agent(BOB, ANN)
    house.do(Interrupt(thread_id=thread(BOB, T1)))
    assert house.next(ANN) is not None


def test_whom_it_waited_for_need_not_go_on_and_nobody_is_locked() -> None:
    house = House.furnished().queue(ANN).run(ANN, *ask("bob")).do(HERE)
    assert house.agent(ANN).step_lock == ()
    assert house.todo(BOB) == []
    assert house.todo(ANN) == []


def test_nobody_interrupts_another_agent_and_only_what_is_there() -> None:
    house = House.furnished().queue(ANN)
    house.refused("not_yours", HERE, by=BOB)
    house.refused("unknown_thread", Interrupt(thread_id=thread(ANN, "nowhere")))


def test_what_is_left_of_an_attempt_is_kept_only_if_somebody_cancelled_it() -> None:
    house = House.furnished().queue(ANN)
    step = house.start(ANN)
    left = FinishStep(step_id=step.step_id, attempt=1, outcome="cancelled", result={"text": "Half"})
    house.refused("not_cancelled", left, by=ANN)
    house.do(HERE).do(left, by=ANN)
    ended = house.ended(step.step_id)
    assert (ended.state, ended.result) == ("cancelled", {"text": "Half"})
