"""Events by name: callbacks around all that is done, in order, each for itself."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from greenroom import (
    Agent,
    AgentSpec,
    EventBus,
    Failed,
    Greenroom,
    History,
    ModelEvent,
    ModelFault,
    ModelRequest,
    ModelTextDelta,
    ProviderFault,
    RefusedError,
    Tool,
    TurnPolicy,
    tool,
)
from greenroom.app.library import events
from greenroom.core.base.ids import TeamId, ThreadId
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


Heard = list[tuple[str, dict[str, Any]]]


def listening(bus: EventBus) -> Heard:
    """All that happens: its name, and what is told of it."""
    heard: Heard = []

    def noting(name: str) -> Callable[..., None]:
        return lambda **told: heard.append((name, told))

    for name in EVERY:
        bus.subscribe(name, noting(name))
    return heard


def names(heard: Heard, *parts: str) -> list[str]:
    """The names of what happened; with `parts`, of what has one of them in its name."""
    return [name for name, _ in heard if not parts or any(part in name for part in parts)]


def test_every_event_has_its_constant() -> None:
    """Those of Jarvis, and the one that it tells of and has forgotten to list."""
    pairs = ("MODEL_CALL", "HISTORY_CLEAR", "SUMMARY", "ADDON_PROMPT", "TOOL_CALL")
    alone = ("TASK_STARTED", "TASK_COMPLETED", "BEFORE_TOOL_FILTER", "TOOL_FILTERED", "INTERRUPT_TRIGGERED")
    every = {*alone, *(f"{when}_{what}" for what in pairs for when in ("BEFORE", "AFTER"))}
    assert {name: getattr(events, name) for name in every} == {name: name.lower() for name in every}
    assert sorted(EVERY) == sorted(name.lower() for name in every), "each of them is told of in some test here"


CALLED = ["before_model_call", "after_model_call"]


@pytest.mark.req("AG-4", "AG-9", "AG-32", "AG-51", "AG-144", "AG-145")
async def test_the_events_of_a_whole_run_come_in_their_order() -> None:
    def play(request: ModelRequest) -> Answer:
        return says("In short.") if request.purpose.skill == "summarize" else answers(request)

    answers = in_order(calls("echo", text="a"), says("Done."))
    spec = AgentSpec(name="ann", history=History(need_summary=True))
    agent = Agent("ann", tools=[echo], model=Played(play), spec=spec)
    async with Greenroom(in_memory=True) as house:
        heard = listening(house.events)
        result = await house.run(agent, "Go.")
    tools, summary = ["before_tool_call", "after_tool_call"], ["before_summary", *CALLED, "after_summary"]
    assert names(heard) == ["task_started", *CALLED, *tools, *CALLED, *summary, "task_completed"]
    assert {told["run_id"] for _, told in heard} == {result.run_id}
    assert {told["agent"] for name, told in heard if "task" not in name} == {"ann"}
    before, after = (told for name, told in heard if "tool_call" in name)
    assert (before["tool"], before["arguments"]) == ("echo", {"text": "a"})
    assert (after["state"], after["output"]) == ("finished", "a")
    ended = [told for name, told in heard if name == "after_model_call"]
    assert [(one["state"], one["response"], one["skill"]) for one in ended] == [
        ("finished", "", "converse"),
        ("finished", "Done.", "converse"),
        ("finished", "In short.", "summarize"),
    ]
    assert heard[1][1]["message"] == "Go."
    assert dict(heard)["after_summary"]["output"] == "In short."
    assert dict(heard)["task_completed"]["state"] == "finished"


@pytest.mark.req("AG-144")
async def test_only_an_agent_that_has_an_addon_prompt_is_said_to_get_one() -> None:
    spec = AgentSpec(name="ann", turn=TurnPolicy(protocols=("tool_call",)))
    agent = Agent("ann", model=Played(lambda _: says("Done. !!!COMPLETE!!!")), spec=spec)
    async with Greenroom(in_memory=True) as house:
        heard = listening(house.events)
        await house.run(agent, "Go.")
    assert names(heard, "addon", "model") == ["before_addon_prompt", "after_addon_prompt", *CALLED]


@pytest.mark.req("AG-21", "AG-32", "AG-145")
async def test_a_history_is_cleared_between_its_two_events_and_each_model_call_has_both_of_its_own() -> None:
    asked: list[ModelRequest] = []

    def play(request: ModelRequest) -> Answer:
        asked.append(request)
        return says("SUMMARY") if request.purpose.skill == "compact" else answers(request)

    answers = in_order(calls("echo", "a", text="a"), calls("echo", "b", text="b"), says("Done."))
    spec = AgentSpec(name="ann", history=History(summary_rounds=2))
    agent = Agent("ann", tools=[echo], model=Played(play), spec=spec)
    async with Greenroom(in_memory=True) as house:
        heard = listening(house.events)
        begins: list[int] = []

        def note(run_id: str, thread: str) -> None:
            host = house.runtime._hosts[TeamId(run_id)]
            begins.append(host.state.threads[ThreadId(thread)].window_from)

        house.events.subscribe("before_history_clear", note)
        house.events.subscribe("after_history_clear", note)
        await house.run(agent, "Go.")
    assert names(heard, "history") == ["before_history_clear", "after_history_clear"]
    assert begins[0] == 0 < begins[1], "before it nothing is cleared yet, after it it is"
    assert names(heard, "model") == CALLED * len(asked), "a turn that was put off has asked nobody"
    assert [told["skill"] for name, told in heard if name == "before_model_call"].count("compact") == 1


async def test_calls_that_fail_or_are_cut_off_have_both_events_too() -> None:
    heard_words = asyncio.Event()

    class Breaks(Played):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            async for event in super().stream(request):
                yield event
            raise RuntimeError("broken")

    class Hangs(Played):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield ModelTextDelta(text="One, ")
            heard_words.set()
            await asyncio.Event().wait()

    async with Greenroom(in_memory=True) as house:
        heard = listening(house.events)
        with pytest.raises(ProviderFault):
            await house.run(Agent("a", model=Played(lambda _: (Failed(kind="auth", why="No."),))), "Go.")
        with pytest.raises(ModelFault):
            await house.run(Agent("b", model=Breaks(lambda _: ())), "Go.")
        async with house.start(Agent("c", model=Hangs(lambda _: ())), "Go."):
            await asyncio.wait_for(heard_words.wait(), 10)
    assert names(heard, "model") == CALLED * 3
    ended = [told for name, told in heard if name == "after_model_call"]
    assert [(one["agent"], one["state"], one["response"]) for one in ended] == [
        ("a", "failed", ""),
        ("b", "failed", ""),
        ("c", "cancelled", "One, "),
    ]


async def test_tools_that_break_or_are_cut_off_have_both_events_and_one_that_is_not_called_has_none() -> None:
    runs = asyncio.Event()

    @tool
    def breaks() -> str:
        """Break."""
        raise RuntimeError("broken")

    @tool
    async def hangs() -> str:
        """Never end."""
        runs.set()
        await asyncio.Event().wait()
        return ""

    @tool(needs_approval=True)
    def asks() -> str:
        """Ask first."""
        return ""

    play = in_order(calls("breaks"), calls("asks", "c2"), calls("hangs", "c3"))
    agent = Agent("ann", tools=[breaks, hangs, asks], model=Played(play))
    async with Greenroom(in_memory=True) as house:
        heard = listening(house.events)
        async with house.start(agent, "Go.", approve=lambda _: False):
            await asyncio.wait_for(runs.wait(), 10)
    assert names(heard, "tool") == ["before_tool_call", "after_tool_call"] * 2
    ended = [told for name, told in heard if name == "after_tool_call"]
    assert [(one["tool"], one["state"], one["output"]) for one in ended] == [
        ("breaks", "failed", "RuntimeError: broken"),
        ("hangs", "cancelled", ""),
    ]


@pytest.mark.req("AG-34", "AG-145")
async def test_an_interruption_is_what_somebody_does_to_an_answer_and_nothing_else() -> None:
    speaks = asyncio.Event()

    class Hangs(Played):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            if self.asked:
                speaks.set()
                await asyncio.Event().wait()
            async for event in super().stream(request):
                yield event

    agent = Agent("ann", model=Hangs(lambda _: says("Yes.")))
    async with Greenroom(in_memory=True) as house:
        heard = listening(house.events)
        async with house.chat(agent) as talk:
            await talk.interrupt()
            await talk.send("Well?")
            await talk.interrupt()
            assert names(heard, "interrupt") == [], "nothing went on"
            saying = asyncio.create_task(talk.send("Count."))
            await asyncio.wait_for(speaks.wait(), 10)
            await talk.interrupt()
            with pytest.raises(RefusedError, match="It was interrupted"):
                await asyncio.wait_for(saying, 10)
            told = [told for name, told in heard if name == "interrupt_triggered"]
            assert told == [{"run_id": talk.id, "agent": "ann"}]
        assert names(heard, "task") == ["task_started"], "a conversation stays open"
        speaks.clear()
        async with house.start(agent, "Count.") as run:
            await asyncio.wait_for(speaks.wait(), 10)
            await run.cancel()
            with pytest.raises(RefusedError, match="cancelled"):
                await run.result()
    assert names(heard, "interrupt") == ["interrupt_triggered"], "to end a run is no interruption"


@pytest.mark.req("AG-25", "AG-29", "AG-30", "AG-145")
@pytest.mark.parametrize(("choice", "selected"), [("2", ["tool_1"]), ("none of them", [])])
async def test_choosing_among_many_tools_is_told_with_its_figures(choice: str, selected: list[str]) -> None:
    def numbered(number: int) -> Tool[..., Any]:
        def does() -> str:
            """Do it."""
            return str(number)

        return tool(name=f"tool_{number}")(does)

    told: list[tuple[str, object, object, object]] = []
    model = Played(lambda request: says(choice) if request.purpose.skill == "filter_tools" else says("So."))
    async with Greenroom(in_memory=True, filter_tools_above=2) as house:
        for name in ("before_tool_filter", "tool_filtered"):
            house.events.subscribe(
                name, lambda name=name, **kw: told.append((name, kw["total"], kw["threshold"], kw.get("selected")))
            )
        await house.run(Agent("ann", tools=[numbered(one) for one in range(3)], model=model), "Do it.")
    assert told == [("before_tool_filter", 3, 2, None), ("tool_filtered", 3, 2, selected)]
