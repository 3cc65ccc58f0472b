"""Of many tools, those that a task needs: asked once, and then the prompt stays the same."""

import json

import pytest

from greenroom.abilities.skills.conversation_skills import build_conversation_skills
from greenroom.abilities.skills.filter_tools import parse_choice
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.runtime import Runtime
from greenroom.core.ports.executor import Capabilities
from greenroom.core.ports.model import Failed, ModelRequest, ToolSpec
from greenroom.core.rules.intents import AddTask
from greenroom.core.state.spec import AgentSpec
from tests.abilities.skills.talks import ANN, Answer, Echo, Played, Team, calls, says

NAMES = ("echo", *(f"tool_{number}" for number in range(1, 10)))
SPECS = [ToolSpec(name=name, description=f"Does {name}. And more.") for name in NAMES]
SPEC = AgentSpec(name="Ann", tools=NAMES)


async def played(model: Played, *, above: int, questions: int = 2) -> Team:
    """Ask so many questions of an agent with ten tools; the team is closed then, its log is in memory."""
    kit = Capabilities([*build_conversation_skills(model, SPECS, filter_above=above), Echo()])
    runtime = Runtime(MemoryLog(), capability_factories={"test": lambda _: kit})
    name = await runtime.create("test", [(ANN, SPEC)], capabilities_name="test")
    await runtime.start(name)
    await runtime.ask(name, AddTask(name="t", intention="t", manager=ANN, group=(ANN,), driver="manager"))
    here = Team(runtime, name)
    for number in range(questions):
        await here.ask(f"Question {number}")
    return here


def answers(choice: Answer) -> Played:
    return Played(lambda request: choice if request.purpose.skill == "filter_tools" else says("So."))


def offered(request: ModelRequest) -> list[str]:
    return [tool.name for tool in request.tools]


@pytest.mark.req("AG-24", "AG-26", "AG-27", "AG-29", "AG-181")
async def test_above_the_threshold_a_task_begins_with_a_choice_that_stays() -> None:
    model = answers(says("3, 1 and 3"))
    here = await played(model, above=9)
    assert await here.did() == ["converse", "filter_tools", "converse", "converse"]
    chooses, *talks = model.asked
    assert "1. echo: Does echo.\n2. tool_1: Does tool_1.\n" in chooses.messages[0].content
    assert "Question 0" in chooses.messages[0].content
    assert "numbers" in chooses.messages[0].content
    assert [offered(one) for one in talks] == [["echo", "tool_2"]] * 2
    assert talks[0].messages[-1].content == "Question 0"
    assert [step.result for step in await here.steps()][1] == {
        "chosen": ["echo", "tool_2"],
        "total": 10,
        "threshold": 9,
    }
    await here.runtime.close()


@pytest.mark.req("AG-24")
async def test_up_to_the_threshold_nobody_is_asked() -> None:
    model = answers(says("1"))
    here = await played(model, above=10)
    assert await here.did() == ["converse", "converse"]
    assert offered(model.asked[0]) == list(NAMES)
    await here.runtime.close()


@pytest.mark.req("AG-30")
@pytest.mark.parametrize("choice", [says("none of them"), says("77"), (Failed(kind="filter", why="No."),)])
async def test_without_a_choice_all_tools_stay_and_nobody_is_asked_again(choice: Answer) -> None:
    model = answers(choice)
    here = await played(model, above=5)
    assert (await here.did()).count("filter_tools") == 1
    assert offered(model.asked[-1]) == list(NAMES)
    await here.runtime.close()


@pytest.mark.req("AG-28")
def test_numbers_are_read_from_whatever_surrounds_them() -> None:
    tools = ["a", "b", "c"]
    assert parse_choice("3, 1", tools) == ["a", "c"]
    assert parse_choice("[1]\n2. b (2)", tools) == ["a", "b"]
    assert parse_choice("0, 4, 999999999999", tools) == []
    assert parse_choice(json.dumps([2]), tools) == ["b"]


async def test_a_tool_that_was_not_chosen_is_not_offered_but_an_agent_may_still_have_it() -> None:
    turns = iter([calls("echo", text="x"), says("So.")])
    model = Played(lambda request: says("2") if request.purpose.skill == "filter_tools" else next(turns))
    here = await played(model, above=5, questions=1)
    assert (await here.did())[-2:] == ["echo", "converse"]
    await here.runtime.close()
