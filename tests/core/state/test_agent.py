"""What an agent is said to be doing."""

import pytest

from tests.core.house import ANN, BOB, House, question


@pytest.mark.req("MAS-64")
def test_an_agent_is_idle_working_or_waiting() -> None:
    house = House.furnished()
    assert house.agent(ANN).working_state == "idle"
    house.queue(ANN)
    assert house.agent(ANN).working_state == "working"
    house.start(ANN)
    assert house.agent(ANN).working_state == "working"
    house.finish(ANN, question(BOB))
    assert house.agent(ANN).working_state == "waiting"


def test_a_waiting_agent_that_answers_is_working() -> None:
    house = House.furnished()
    house.ask_agent(ANN, BOB)
    house.ask_agent(BOB, ANN)
    house.start(ANN)
    assert house.agent(ANN).working_state == "working"
