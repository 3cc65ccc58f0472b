"""Tools as people write them: what they raise, what they take, what they are called."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from greenroom import Agent, EventBus, Greenroom, WorldFault, tool
from tests.abilities.skills.talks import Played, in_order, says
from tests.abilities.skills.test_turns import several

PATIENCE = 20.0


class Point(BaseModel):
    """A place."""

    x: int
    y: int = 0


class Odd(BaseException):
    """Nobody expects it."""


async def told(function: Callable[..., Any], **given: object) -> str:
    """What the model reads of a call of this tool."""
    model = Played(in_order(several((function.__name__, given)), says("So.")))
    async with Greenroom(memory=True) as house, asyncio.timeout(PATIENCE):
        await house.run(Agent("ann", tools=[function], model=model), "Do it.")
    return next(one.content for one in model.asked[-1].messages if one.role == "tool")


ANYTHING = (StopIteration("x"), Odd("x"), GeneratorExit(), SystemExit(3), KeyboardInterrupt())


@pytest.mark.parametrize(("error", "waits"), [*((error, False) for error in ANYTHING), (Odd("x"), True)])
async def test_whatever_a_tool_raises_costs_one_step_and_is_done_once(error: BaseException, waits: bool) -> None:
    made = 0

    def pays() -> None:
        """Pay."""
        nonlocal made
        made += 1
        raise error

    async def pays_later() -> None:
        """Pay."""
        pays()

    pays_later.__name__ = "pays"
    read = await told(pays_later if waits else pays)
    assert (made, type(error).__name__ in read) == (1, True)


async def test_an_error_that_is_very_long_or_no_text_is_told_in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("greenroom.actors.agents.crew"), "disabled", True)  # no log can hold it

    def fails() -> None:
        """Fail."""
        raise ValueError("\ud800" + "x" * 5_000_000)

    assert len(await told(fails)) < 11_000


async def test_paths_and_pydantic_models_are_parameters_like_all_others() -> None:
    def reaches(place: Point, through: list[Point], file: Path, via: Point | None = None) -> str:
        """Go there."""
        return f"{type(place).__name__} {place.x} {len(through)} {file.name} {via}"

    read = await told(reaches, place={"x": 3}, through=[{"x": 1}], file="a/b.txt")
    assert read == "Point 3 1 b.txt None"


@pytest.mark.parametrize(
    ("hint", "given"), [(datetime, "2024"), (bool, "1"), (int, "5"), (float, "nan"), (Point, {"x": "far"})]
)
async def test_what_is_not_of_the_type_never_reaches_the_tool(hint: Any, given: object) -> None:
    def takes(value: object) -> str:
        """Take it."""
        return "taken"

    takes.__annotations__["value"] = hint
    assert (await told(takes, value=given)).startswith("Not called: ")


@pytest.mark.parametrize("name", ["finish", "answer", "send_message", "call_agent", "post_note"])
def test_a_tool_is_not_called_like_a_call_of_the_house(name: str) -> None:
    with pytest.raises(WorldFault, match="the house itself"):
        tool(name=name)(says)


def yields() -> Iterator[int]:
    """Yield."""
    yield 1


def takes_object(value: int, other: asyncio.Lock) -> None:
    """Take it."""


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (yields, "yields, and a model reads one result"),
        (partial(takes_object, 1), "is no name for a tool"),
        (
            takes_object,
            "The parameter 'other' of the tool 'takes_object': Lock cannot be told to a model: a Lock has no",
        ),
    ],
)
def test_what_cannot_be_a_tool_says_why(function: Callable[..., object], why: str) -> None:
    with pytest.raises(WorldFault, match=why):
        tool(function)


def test_a_callable_that_is_no_function_and_a_hint_that_is_none_are_refused() -> None:
    with pytest.raises(WorldFault, match="is no function"):
        tool(name="takes")(partial(takes_object, 1))
    takes_object.__annotations__["other"] = "1 +"
    with pytest.raises(WorldFault, match="cannot be read"):
        tool(takes_object)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"tools": yields}, "Give a list: tools="),
        ({"agents": ["bob"]}, "it is no Agent"),
        ({"model": 5}, "give the name of a model"),
        ({"temperature": 99}, "cannot be temperature"),
        ({"repairs": -1}, "cannot be repairs"),
    ],
)
def test_an_agent_that_cannot_be_is_refused_when_it_is_described(given: dict[str, Any], why: str) -> None:
    with pytest.raises(WorldFault, match=why):
        Agent("ann", **given)


async def test_only_a_text_is_something_to_do() -> None:
    wrong: Any = 5
    async with Greenroom(memory=True) as house:
        with pytest.raises(WorldFault, match="text"):
            await house.run(Agent("ann", model=Played(lambda _: says("x"))), wrong)


def test_a_callback_is_a_plain_function() -> None:
    async def later(**_: object) -> None:
        """Never."""

    for wrong in (later, 5):
        callback: Any = wrong
        with pytest.raises(WorldFault, match="plain function"):
            EventBus().subscribe("task_started", callback)
