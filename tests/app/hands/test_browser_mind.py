"""The model that leads a browser: asked within what is reserved, heard by nobody else, and paid for to the token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from greenroom.abilities.tools.browser.browser_use import Bounds, BrowserUse
from greenroom.abilities.tools.browser.wishes import ACTIONS
from greenroom.app.toolset.web import ANSWER, ENOUGH, LEAST, ModelMind
from greenroom.core.base.amounts import Amounts, Limits
from greenroom.core.base.ids import TEAM_BUDGET
from greenroom.core.ports.model import (
    Failed,
    Finished,
    ModelCard,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCall,
    Usage,
)
from greenroom.core.rules.intents import SetLimits
from greenroom.core.state.step import Step, Terms
from greenroom.core.state.world import World
from tests.abilities.tools.browser.stage import StagedAlbum, StagedBrowser
from tests.abilities.tools.calling import T1, caller

BACK = ToolCall(call_id="c", name="back", arguments={})
DONE = ToolCall(call_id="c", name="done", arguments={"result": "x"})


class Priced:
    """A model that answers with these events each time, the last ones for ever."""

    name = "odd:model"

    def __init__(self, *answers: tuple[ModelEvent, ...], calls: bool = True, price: int | None = 2) -> None:
        self._answers = list(answers)
        self._price = price
        self.card = ModelCard(tools=calls, output=1_000)
        self.asked: list[ModelRequest] = []

    def named(self, _: str) -> Priced:
        return self

    def price(self, read: int, written: int) -> int | None:
        return None if self._price is None else self._price * (read + 10 * written)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.append(request)
        for event in self._answers[0] if len(self._answers) == 1 else self._answers.pop(0):
            yield event


class Watched(ModelMind):
    """Remembers under which terms it was to think."""

    found: Terms | None = None

    def terms(self, world: World, step: Step) -> Terms:
        self.found = super().terms(world, step)
        return self.found


def answered(call: ToolCall, usage: Usage | None = None) -> tuple[ModelEvent, ...]:
    return (call, *(() if usage is None else (usage,)), Finished(reason="calls"))


async def led(model: Priced, tokens: int = 40_000) -> tuple[Step, Terms]:
    """An errand that this model leads."""
    mind = Watched(model, tokens)
    async with caller([BrowserUse(lambda _: StagedBrowser(), mind, StagedAlbum(), Bounds())]) as hands:
        step = await hands.call("browser_use", task="look around")
    assert mind.found is not None
    return step, mind.found


async def test_all_that_it_may_use_is_reserved_and_what_it_used_is_paid() -> None:
    model = Priced(answered(BACK, Usage(input=300, output=10, money=5)), answered(DONE, Usage(input=400, output=20)))
    step, terms = await led(model)
    assert terms.needs == Amounts(tokens=40_000, money=2 * (35_000 + 10 * 5_000))
    assert (terms.effect, terms.priced, terms.model) == ("effectful", True, "odd:model")
    assert (step.spent.tokens, step.spent.money) == (730, 5)
    first, second = model.asked
    assert first.tools == ACTIONS
    assert (first.tool_choice, first.max_output) == ("required", min(ANSWER, 1_000))
    assert [one.purpose.turn for one in (first, second)] == [1, 2]
    assert (first.purpose.skill, first.purpose.agent) == ("browser_use", "ann")
    assert first.messages[0] == second.messages[0]


@pytest.mark.parametrize(
    ("limits", "tokens"),
    [(Limits(), 160_000), (Limits(tokens=90_000), 80_000), (Limits(money=250_000), 40_000), (Limits(tokens=9), None)],
)
async def test_under_a_limit_as_much_is_reserved_as_fits(limits: Limits, tokens: int | None) -> None:
    mind = Watched(Priced(answered(DONE, Usage())), 160_000)
    async with caller([BrowserUse(lambda _: StagedBrowser(), mind, StagedAlbum(), Bounds())]) as hands:
        await hands.runtime.ask(hands.team, SetLimits(budget_id=TEAM_BUDGET, limits=limits))
        await hands.begin("browser_use", task="look around")
        await asyncio.wait_for(hands.runtime.wait(hands.team, T1), 20)
        ended = [one.state for one in await hands.steps()]
    assert mind.found is not None
    assert (mind.found.needs.tokens, ended) == ((tokens, ["finished"]) if tokens else (LEAST, []))


async def test_it_ends_when_what_is_reserved_is_used_up() -> None:
    model = Priced(answered(BACK, Usage(input=9_000, output=1_000)))
    step, terms = await led(model)
    assert (step.state, step.error) == ("failed", ENOUGH)
    assert 2 <= len(model.asked) <= 4
    assert step.spent.tokens == 10_000 * len(model.asked) <= terms.needs.tokens


async def test_an_answer_of_which_nobody_says_what_it_cost_costs_what_it_may() -> None:
    model = Priced(answered(BACK))
    step, terms = await led(model)
    assert step.error == ENOUGH
    assert 0 < step.spent.tokens <= terms.needs.tokens
    assert 0 < step.spent.money <= terms.needs.money


@pytest.mark.req("MAS-195")
@pytest.mark.parametrize(
    ("failed", "free"), [(Failed(kind="auth", why="Wrong key."), True), (Failed(kind="timeout", why="No end."), False)]
)
async def test_a_provider_that_does_not_answer_fails_the_step(failed: Failed, free: bool) -> None:
    step, _ = await led(Priced((failed,)))
    assert (step.state, step.error) == ("failed", failed.why)
    assert (step.spent.tokens == 0) == free


async def test_a_model_without_a_price_says_so_before_it_is_asked() -> None:
    _, terms = await led(Priced(answered(DONE), price=None))
    assert (terms.priced, terms.needs.money) == (False, 0)


async def test_a_model_without_calls_is_told_to_answer_in_text() -> None:
    model = Priced((TextDelta(text='{"action": "done", "result": "x"}'), Finished()), calls=False)
    step, _ = await led(model)
    assert step.state == "finished"
    assert (model.asked[0].tools, model.asked[0].tool_choice) == ((), "auto")
    assert '{"action": NAME' in model.asked[0].messages[0].content
