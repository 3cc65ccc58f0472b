"""`greenroom models`: which models can be asked here, and whether one of them answers."""

from __future__ import annotations

import os
from typing import Final

from rich.text import Text

from greenroom.app.model_catalog import Offer, Shelf, Trial, at_hand, bound, shelf, trials
from greenroom.app.model_registry import NO_MODEL
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.model import Model, Usage
from greenroom.interfaces.cli.asked.orders import ModelsCheck, ModelsList
from greenroom.interfaces.cli.display.rows import dollars
from greenroom.interfaces.cli.display.tables import Column, Fitted, row
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Desk

MILLION: Final = 1_000_000
MANY: Final = 20
"""Models of one provider that are listed when it was not asked for by name."""

MODELS: Final = (
    Column(name="model"),
    Column(name="window", right=True, needs=60),
    Column(name="tools", needs=70),
    Column(name="$ in / out per million", right=True, needs=50),
    Column(name="key", style="dim", needs=80),
)
TRIALS: Final = (
    Column(name="call"),
    Column(name="works"),
    *(Column(name=name, right=True, needs=60) for name in ("first word", "all", "tokens", "cost")),
)
WAYS: Final = {"streamed": "streamed", "whole": "in one piece", "tool": "with a tool"}


# ------------------------------------------------------------------------------------------------------------ list


async def models_list(desk: Desk, order: ModelsList) -> Exit:
    """A row per model."""
    provisions = desk.means.provisions
    sources = await at_hand(provisions.loaded.settings, os.environ, order.provider)
    if not sources:
        raise WorldFault(NO_MODEL)
    desk.out.begin(command="models list")
    desk.out.expect("models")
    cells: list[list[Text]] = []
    for one in sources:
        found = await shelf(provisions.supply, one)
        cells += [_offer(offer) for offer in _shown(desk, found, every=bool(order.provider))]
        for offer in found.offers:
            desk.out.item("model", _fields(offer))
    if cells:
        desk.out.show(Fitted(MODELS, cells))
    desk.progress.note(f"\nTry one: {command(desk, 'models', 'check', 'NAME')}")
    return desk.out.result("ok", Exit.DONE)


def _shown(desk: Desk, found: Shelf, *, every: bool) -> list[Offer]:
    """The models that a person gets to see: all of a provider that was named, else the first that we know."""
    name = found.source.provider
    if found.trouble:
        then = "; these are the catalog's proposals" if found.offers else ""
        desk.progress.note(f"{name} {found.trouble.rstrip('.')}{then}.", style="yellow")
    if every or len(found.offers) <= MANY:
        return list(found.offers)
    shown = [offer for offer in found.offers if offer.known][:MANY] or list(found.offers[:MANY])
    desk.progress.note(f"{name} has {len(found.offers)}; all of them: {command(desk, 'models', 'list', name)}")
    return shown


def _offer(one: Offer) -> list[Text]:
    price = f"{_rate(one.input)} / {_rate(one.output)}" if one.input is not None else "unknown"
    return row(one.name, f"{one.window:,}", "yes" if one.tools else "no", price, one.key or "none needed")


def _rate(amount: int | None) -> str:
    return "?" if amount is None else f"{amount / MILLION:.2f}"


def _fields(one: Offer) -> dict[str, object]:
    return {
        "name": one.name,
        "window": one.window,
        "tools": one.tools,
        "input_price": None if one.input is None else one.input / MILLION,
        "output_price": None if one.output is None else one.output / MILLION,
        "key": one.key,
    }


# ----------------------------------------------------------------------------------------------------------- check


async def models_check(desk: Desk, order: ModelsCheck) -> Exit:
    """Try it, or all that its name stands for."""
    provisions = desk.means.provisions
    await provisions.look_around()
    names = provisions.supply.meaning(order.model)
    models = [provisions.supply.bare(name) for name in names]
    desk.out.begin(command="models check", models=list(names))
    desk.out.expect("trials")
    cap, most = provisions.loaded.settings.limits.cost, sum(bound(model) or 0 for model in models)
    if cap is not None and most > cap * MILLION:
        raise WorldFault(
            f"The check may cost {dollars(most)}, and your cap is ${cap:g}. Raise it with GREENROOM_MAX_COST."
        )
    works = [await _checked(desk, model) for model in models]
    if any(works):
        desk.progress.note(f"\nAsk it: {command(desk, 'ask', '--model', names[works.index(True)], 'QUESTION')}")
    return desk.out.result("ok" if all(works) else "failed", Exit.DONE if all(works) else Exit.PROVIDER)


async def _checked(desk: Desk, model: Model) -> bool:
    """Whether the model answers in the way in which agents ask."""
    most = bound(model)
    cost = "its price is unknown" if most is None else f"at most {dollars(most)}" if most else "free of charge"
    desk.progress.note(f"{model.name}: three tiny calls, {cost}.", style="bold")
    found: list[Trial] = []
    async for one in trials(model):
        found.append(one)
        desk.out.item("trial", {"model": model.name, **_result(one)})
    desk.out.show(Fitted(TRIALS, [_trial(one) for one in found]))
    for fault in dict.fromkeys(one.fault for one in found if one.fault):
        desk.out.show(Text(f"  {fault}", style="red"))
    return not found[0].fault


def _trial(one: Trial) -> list[Text]:
    works = Text("no", style="red") if one.fault else Text("yes", style="green")
    used = one.usage or Usage()
    told = one.usage is not None
    return row(
        WAYS[one.way],
        works,
        f"{one.first:.2f} s" if one.first else "",
        f"{one.whole:.2f} s",
        f"{used.input + used.output:,}" if told else "not told",
        "unknown" if used.money is None else dollars(used.money),
    )


def _result(one: Trial) -> dict[str, object]:
    used = one.usage
    return {
        "call": one.way,
        "works": not one.fault,
        "fault": one.fault,
        "first": round(one.first, 3),
        "seconds": round(one.whole, 3),
        "tokens": None if used is None else used.input + used.output,
        "cost": None if used is None or used.money is None else used.money / MILLION,
    }
