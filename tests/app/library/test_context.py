"""What a run is given for its tools: they get it, and nobody else ever hears of it."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from greenroom import Agent, Bench, Context, Greenroom, WorldFault, tool
from greenroom.core.base.records import encode
from tests.abilities.skills.talks import Answer, Played, calls, in_order, says

SECRET = "the-secret-of-the-shop"


@dataclass
class Shop:
    """What the tools work with."""

    secret: str
    stock: dict[str, int]


@tool(effect="pure")
def stock(item: str, shop: Context[Shop], bench: Bench) -> str:
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
    async with Greenroom(memory=True) as house:
        result = await house.run(keeper(model), "Tea?", context=Shop(SECRET, {"tea": 7}))
        log = [encode(one.event) async for one in house.runtime.events(result.run)]
    assert model.asked[1].messages[-1].content == "7 for keeper"
    assert stock.spec.parameters["properties"] == {"item": {"type": "string"}}
    assert not [one for one in log if SECRET.encode() in one]


async def test_runs_side_by_side_have_each_their_own() -> None:
    async with Greenroom(memory=True) as house:
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
        with pytest.raises(WorldFault, match="give it each time"):
            await house.resume(keeper(), run.id)
        assert (await house.resume(keeper(), run.id, context=shop)).output == "Seven."


async def test_a_tool_may_do_without() -> None:
    def agent() -> Agent[str]:
        return Agent("ann", tools=[closed], model=Played(lambda request: seen(request.messages[-1].content)))

    def seen(last: str) -> Answer:
        return calls("closed") if last == "Closed?" else says(last)

    async with Greenroom(memory=True) as house:
        assert (await house.run(agent(), "Closed?")).output == "true"
        assert (await house.run(agent(), "Closed?", context=Shop("", {}))).output == "false"


def test_people_call_it_as_before() -> None:
    assert asyncio.run(closed()) is True
