"""Calls of other agents: the answer is the result of the native call, and nothing else is told of it."""

import pytest

from greenroom.core.base.ids import WaitingId
from greenroom.core.base.records import evolve
from greenroom.core.rules.intents import QueueSteps, RemoveAgent, SendMessage
from greenroom.core.state.step import Work
from tests.core.house import ANN, BOB, CY, T1, House, question, reply, skill


def ask(name: str, *others: str) -> tuple[SendMessage | QueueSteps, ...]:
    """What a reply asks for that calls other agents."""
    receivers = {"bob": BOB, "cy": CY}
    asked = [evolve(question(receivers[one]), call_id=f"to-{one}", delivery="call") for one in (name, *others)]
    works = [
        Work(type="tool", executor="shell", instruction_content={"agent": one}, call_id=f"to-{one}")
        for one in (name, *others)
    ]
    return (*asked, QueueSteps(agent_id=ANN, works=(*works, skill("converse", "go on")), place="next"))


def waiting(house: House, call: str) -> WaitingId:
    """The id that the callee returns."""
    return next(name for name, wait in house.world.waits.items() if wait.call_id == call)


def test_calls_go_out_together_and_their_answers_are_their_results() -> None:
    house = House.furnished().queue(ANN).run(ANN, *ask("bob", "cy"))
    assert house.next(ANN) is None, "both are awaited"
    house.run(CY, reply(waiting(house, "to-cy"), ANN))
    assert house.start(ANN).work.instruction_content == {"agent": "cy", "answer": "so"}
    house.finish(ANN)
    assert house.next(ANN) is None, "the next turn waits for the other one"
    house.run(BOB, reply(waiting(house, "to-bob"), ANN)).run(ANN)
    assert house.texts(ANN) == ["go on"], "no other step tells of the answers"
    assert house.next(ANN) is not None


def test_a_call_that_nobody_answers_gets_that_as_its_result() -> None:
    house = House.furnished().queue(ANN).run(ANN, *ask("bob")).do(RemoveAgent(agent_id=BOB))
    told = house.start(ANN).work.instruction_content or {}
    assert "will not answer: the agent was removed" in str(told["error"])
    assert house.finish(ANN).texts(ANN) == ["go on"]


def test_a_call_that_the_callee_ends_without_a_word_gets_that_as_its_result() -> None:
    house = House.furnished().queue(ANN).run(ANN, *ask("bob")).run(BOB)
    assert "without answering" in str((house.start(ANN).work.instruction_content or {})["error"])


def test_a_call_of_nobody_is_not_waited_for() -> None:
    message, queue = ask("bob")
    assert isinstance(message, SendMessage)
    house = House.furnished().queue(ANN).run(ANN, evolve(message, message=" "), queue)
    assert house.codes() == ["empty_message"]
    assert house.start(ANN).work.instruction_content == {"agent": "bob"}


@pytest.mark.parametrize("order", [("bob", "cy"), ("cy", "bob")])
def test_an_answer_in_another_conversation_fills_no_call_of_this_one(order: tuple[str, str]) -> None:
    house = House.furnished().queue(ANN).run(ANN, *ask(*order))
    house.do(SendMessage(task_id=T1, receiver=(ANN,), message="by the way"), by=BOB)
    assert house.next(ANN) is None
    assert all(wait.call_id for wait in house.world.waits.values())
