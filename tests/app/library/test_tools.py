"""Which tools an agent of a program has, odd ones among them, their context, and which were executed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from greenroom import Agent, Context, EventBus, Greenroom, StepContext, WorldFault, tool
from greenroom.abilities.tools.tool import DEFAULT_TOOLS
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.app.toolset.toolset import build_toolbox
from greenroom.core.base.records import encode
from tests.abilities.skills.talks import Answer, Played, calls, in_order, says
from tests.abilities.skills.test_turns import several


@tool
def pay() -> str:
    """Pay."""
    return "paid"


def test_the_usual_tools_are_all_there(tmp_path: Path) -> None:
    toolbox: Toolbox = build_toolbox(tmp_path)
    assert {tool.name for tool in toolbox}.issuperset(DEFAULT_TOOLS)


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
    async with Greenroom(in_memory=True) as house, asyncio.timeout(PATIENCE):
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
    monkeypatch.setattr(logging.getLogger("greenroom.actors.pool"), "disabled", True)  # no log can hold it

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
    with pytest.raises(WorldFault, match="is a reserved name"):
        tool(name=name)(says)


def yields() -> Iterator[int]:
    """Yield."""
    yield 1


def takes_object(value: int, other: asyncio.Lock) -> None:
    """Take it."""


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (yields, "is a generator. Return the whole result"),
        (partial(takes_object, 1), "is not a valid tool name"),
        (
            takes_object,
            "The parameter 'other' of the tool 'takes_object': Lock cannot be described to a model: a Lock has no",
        ),
    ],
)
def test_what_cannot_be_a_tool_says_why(function: Callable[..., object], why: str) -> None:
    with pytest.raises(WorldFault, match=why):
        tool(function)


def test_a_callable_that_is_no_function_and_a_hint_that_is_none_are_refused() -> None:
    with pytest.raises(WorldFault, match="is not a function"):
        tool(name="takes")(partial(takes_object, 1))
    takes_object.__annotations__["other"] = "1 +"
    with pytest.raises(WorldFault, match="cannot be read"):
        tool(takes_object)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"tools": yields}, "Pass a list: tools="),
        ({"temperature": 99}, "not a valid temperature"),
        ({"output_retries": -1}, "not a valid output_retries"),
    ],
)
def test_an_agent_that_cannot_be_is_refused_when_it_is_described(given: dict[str, Any], why: str) -> None:
    with pytest.raises(WorldFault, match=why):
        Agent("ann", **given)


def test_a_callback_is_a_plain_function() -> None:
    async def later(**_: object) -> None:
        """Never."""

    for wrong in (later, 5):
        callback: Any = wrong
        with pytest.raises(WorldFault, match="plain function"):
            EventBus().subscribe("task_started", callback)


SECRET = "the-secret-of-the-shop"


@dataclass
class Shop:
    """What the tools work with."""

    secret: str
    stock: dict[str, int]


@tool(effect="pure")
def stock(item: str, shop: Context[Shop], bench: StepContext) -> str:
    """How many there are of something."""
    return f"{shop.stock[item]} for {bench.agent.agent_id}"


@tool(effect="pure")
async def closed(shop: Context[Shop | None] = None) -> bool:
    """Whether the shop is closed."""
    return shop is None


def keeper(model: Played | None = None) -> Agent[str]:
    """Looks once, then says so."""
    return Agent("keeper", tools=[stock], model=model or Played(in_order(calls("stock", item="tea"), says("Seven."))))


async def test_a_tool_gets_what_its_run_was_given_and_the_model_is_not_told() -> None:
    model = Played(in_order(calls("stock", item="tea"), says("Seven.")))
    async with Greenroom(in_memory=True) as house:
        result = await house.run(keeper(model), "Tea?", context=Shop(SECRET, {"tea": 7}))
        log = [encode(one.event) async for one in house.runtime.events(result.run_id)]
    assert model.asked[1].messages[-1].content == "7 for keeper"
    assert stock.spec.parameters["properties"] == {"item": {"type": "string"}}
    assert not [one for one in log if SECRET.encode() in one]


async def test_runs_side_by_side_have_each_their_own() -> None:
    async with Greenroom(in_memory=True) as house:
        models = [Played(in_order(calls("stock", item="tea"), says("Done."))) for _ in range(2)]
        shops = [Shop("", {"tea": 1}), Shop("", {"tea": 2})]
        pairs = zip(models, shops, strict=True)
        await asyncio.gather(*(house.run(keeper(model), "Tea?", context=shop) for model, shop in pairs))
    assert [model.asked[1].messages[-1].content for model in models] == ["1 for keeper", "2 for keeper"]


async def test_a_tool_that_needs_something_is_not_run_without_it(tmp_path: Path) -> None:
    shop = Shop(SECRET, {"tea": 7})
    async with Greenroom(tmp_path) as house:
        with pytest.raises(WorldFault, match="The tool 'stock' needs a context, and none was given"):
            await house.run(keeper(), "Tea?")
        assert await house.runs() == [], "nothing was begun"
        async with house.start(keeper(), "Tea?", context=shop) as run:
            pass
    async with Greenroom(tmp_path) as house:
        with pytest.raises(WorldFault, match="pass it each time"):
            await house.resume(keeper(), run.id)
        assert (await house.resume(keeper(), run.id, context=shop)).output == "Seven."


async def test_a_tool_may_do_without() -> None:
    def agent() -> Agent[str]:
        return Agent("ann", tools=[closed], model=Played(lambda request: seen(request.messages[-1].content)))

    def seen(last: str) -> Answer:
        return calls("closed") if last == "Closed?" else says(last)

    async with Greenroom(in_memory=True) as house:
        assert (await house.run(agent(), "Closed?")).output == "true"
        assert (await house.run(agent(), "Closed?", context=Shop("", {}))).output == "false"
