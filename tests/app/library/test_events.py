"""Events by name: callbacks around all that is done, in order, each for itself."""

from collections.abc import Callable

import pytest

from greenroom import Agent, AgentSpec, EventBus, Greenroom, History, ModelRequest, tool
from greenroom.app.library import events
from tests.abilities.skills.talks import Answer, Played, calls, in_order, says

EVERY = [value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)]


@tool(effect="pure")
def echo(text: str) -> str:
    """Say it back."""
    return text


@pytest.mark.req("AG-46", "AG-47", "AG-49")
def test_callbacks_are_called_in_order_until_they_are_taken_back() -> None:
    bus, heard = EventBus(), list[str]()

    def first(*, text: str) -> None:
        heard.append(f"first {text}")

    bus.emit("said", text="nobody hears")
    bus.subscribe("said", first)
    bus.subscribe("said", lambda text: heard.append(f"second {text}"))
    bus.emit("said", text="a")
    bus.unsubscribe("said", first)
    bus.emit("said", text="b")
    bus.unsubscribe("said", first)
    bus.unsubscribe("never", first)
    assert heard == ["first a", "second a", "second b"]


@pytest.mark.req("AG-48", "AG-50", "AG-186")
def test_a_callback_that_raises_keeps_nobody_from_hearing() -> None:
    bus, heard = EventBus(), list[int]()

    def breaks(**_: object) -> None:
        raise RuntimeError("broken")

    bus.subscribe("said", breaks)
    bus.subscribe("said", lambda: heard.append(1))
    bus.emit("said")
    assert heard == [1]


def listening(bus: EventBus, heard: list[str]) -> None:
    """Write down the name of all that happens."""

    def noting(name: str) -> Callable[..., None]:
        return lambda **_: heard.append(name)

    for name in EVERY:
        bus.subscribe(name, noting(name))


@pytest.mark.req("AG-4", "AG-9", "AG-32", "AG-51", "AG-144")
async def test_the_events_of_a_whole_run_come_in_their_order() -> None:
    def play(request: ModelRequest) -> Answer:
        return says("In short.") if request.purpose.skill == "summarize" else answers(request)

    answers = in_order(calls("echo", text="a"), says("Done."))
    spec = AgentSpec(name="ann", history=History(need_summary=True))
    agent = Agent("ann", tools=[echo], model=Played(play), spec=spec)
    heard: list[str] = []
    async with Greenroom(memory=True) as house:
        listening(house.events, heard)
        await house.run(agent, "Go.")
    turn = ["before_addon_prompt", "after_addon_prompt", "before_model_call", "after_model_call"]
    tools = ["before_tool_call", "after_tool_call"]
    assert heard == ["task_started", *turn, *tools, *turn, "before_summary", "after_summary", "task_completed"]


@pytest.mark.req("AG-21")
async def test_both_events_of_a_cleared_history_are_told() -> None:
    def play(request: ModelRequest) -> Answer:
        return says("SUMMARY") if request.purpose.skill == "compact" else answers(request)

    answers = in_order(calls("echo", "a", text="a"), calls("echo", "b", text="b"), says("Done."))
    agent = Agent(
        "ann", tools=[echo], model=Played(play), spec=AgentSpec(name="ann", history=History(summary_rounds=2))
    )
    heard: list[str] = []
    async with Greenroom(memory=True) as house:
        listening(house.events, heard)
        await house.run(agent, "Go.")
    cleared = [one for one in heard if "history" in one]
    assert cleared == ["before_history_clear", "after_history_clear"]
