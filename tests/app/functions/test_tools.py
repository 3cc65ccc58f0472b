"""`@tool`: a function as a tool."""

import asyncio
import threading
from collections.abc import Callable
from typing import Annotated

import pytest
from msgspec import Meta

from greenroom import (
    Agent,
    Greenroom,
    ModelFault,
    ModelRequest,
    RefusedError,
    Step,
    WorldFault,
    tool,
)
from greenroom.app import threads
from tests.abilities.skills.talks import Answer, Played, calls, says


@tool
def weather(city: str, days: int = 1, *, units: Annotated[str, Meta(pattern="^[CF]$")] = "C") -> str:
    """Tell the weather.

    Use it for the days to come.

    Args:
        city: Its English name.
        days (int): How many days,
            at most ten.

    Returns:
        A sentence.
    """
    return f"{city} {days} {units}"


def test_a_model_is_told_what_stands_in_the_docstring_and_the_hints() -> None:
    spec = weather.spec
    assert spec.name == "weather"
    assert spec.description == "Tell the weather.\n\nUse it for the days to come."
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Its English name."},
            "days": {"type": "integer", "description": "How many days,", "default": 1},
            "units": {"type": "string", "pattern": "^[CF]$", "default": "C"},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_people_call_it_as_before() -> None:
    assert weather("Oslo", 2, units="F") == "Oslo 2 F"


def test_sphinx_docstrings_are_read_too() -> None:
    @tool(name="look-up", effect="pure")
    def look(word: str) -> str:
        """Look a word up.

        :param word: What to look up.
        """
        return word

    assert look.name == "look-up"
    assert look.effect == "pure"
    assert look.spec.description == "Look a word up."
    assert look.spec.parameters["properties"] == {"word": {"type": "string", "description": "What to look up."}}


def _silent(x: int) -> int:
    return x


def _untyped(x: int) -> int:
    """Say."""
    return x


del _untyped.__annotations__["x"]


def _open(*args: int) -> int:
    """Say."""
    return sum(args)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_silent, "has no docstring"),
        (_untyped, "'x' of the tool '_untyped' has no type hint"),
        (_open, "only fill in named parameters"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_when_it_is_made(function: Callable[..., int], said: str) -> None:
    with pytest.raises(WorldFault, match=said):
        tool(function)


def stubborn(begun: threading.Event, let_go: threading.Event) -> Agent[str]:
    """Calls a function that cannot be ended, only let go."""

    @tool(effect="pure")
    def work() -> str:
        """Work."""
        begun.set()
        let_go.wait(10)
        return "worked"

    return Agent("ann", tools=[work], model=Played(lambda _: calls("work")))


async def test_a_call_that_is_cut_off_is_over_when_its_thread_is() -> None:
    begun, let_go = threading.Event(), threading.Event()
    async with Greenroom(in_memory=True) as house, house.start(stubborn(begun, let_go), "Work.") as run:
        await asyncio.to_thread(begun.wait, 10)
        await run.cancel()
        over = asyncio.create_task(run.result())
        assert (await asyncio.wait({over}, timeout=0.2))[0] == set()
        (step,) = [one for one in (await house.runtime.state(run.id)).steps.values() if one.work.executor == "work"]
        assert step.state == "cancelling", "the thread still runs"
        let_go.set()
        with pytest.raises(RefusedError, match="cancelled"):
            await asyncio.wait_for(over, 10)
        ended = [one async for one in house.runtime.archive(run.id, "step") if isinstance(one, Step)]
        assert [one.state for one in ended if one.work.executor == "work"] == ["cancelled"]


async def test_a_thread_that_never_ends_is_waited_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "ABANDON_AFTER_S", 0.01)
    begun, let_go = threading.Event(), threading.Event()
    try:
        async with Greenroom(in_memory=True) as house, house.start(stubborn(begun, let_go), "Work.") as run:
            await asyncio.to_thread(begun.wait, 10)
            await run.cancel()
            with pytest.raises(RefusedError, match="cancelled"):
                await asyncio.wait_for(run.result(), 5)
    finally:
        let_go.set()


async def test_a_tool_can_have_the_model_try_again_in_its_own_words() -> None:
    @tool
    def pick(number: int) -> str:
        """Pick a number."""
        if number > 3:
            raise ModelFault("Pick a number up to 3.")
        return "picked"

    def play(request: ModelRequest) -> Answer:
        told = [one.content for one in request.messages if one.role == "tool"]
        return (
            calls("pick", number=7) if not told else calls("pick", "c2", number=2) if len(told) < 2 else says(told[0])
        )

    async with Greenroom(in_memory=True) as house:
        result = await house.run(Agent("ann", tools=[pick], model=Played(play)), "Pick.")
    assert result.output == "Pick a number up to 3."


async def test_a_thread_is_used_again_and_two_functions_at_once_have_two() -> None:
    first = (await threads.start_in_thread(threading.get_ident)).result()
    assert (await threads.start_in_thread(threading.get_ident)).result() == first
    both = threading.Barrier(2)
    met = [threads.start_in_thread(lambda: (both.wait(10), threading.get_ident())[1]) for _ in range(2)]
    assert len({(await one).result() for one in met}) == 2
