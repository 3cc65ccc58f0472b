"""`greenroom models` and `eval`: which models can be asked here, whether one answers, and how well it works."""

from __future__ import annotations

import os
from typing import Annotated, Final

import typer
from rich.text import Text

from greenroom.app.cost import MILLION, dollars
from greenroom.app.evals import Verdict, chosen, play
from greenroom.app.model_catalog import Offer, Shelf, Trial, at_hand, bound, shelf, trials
from greenroom.app.model_registry import NO_MODEL
from greenroom.cli.context import Invocation, command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.options import RunOptions
from greenroom.cli.render.output import Column, Fitted, row
from greenroom.cli.start import describe_caps, refuse_unpriced
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data
from greenroom.core.ports.model import Model, Usage

MANY: Final = 20  # models of one provider that are listed when it was not asked for by name
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


async def models_list(
    cli: Invocation,
    provider: Annotated[str, typer.Argument(metavar="PROVIDER", help="Only this one's, like openai.")] = "",
) -> None:
    """List the models of the providers at hand: window, tools, price per million tokens, where the key comes from."""
    provisions = cli.means.provisions
    sources = await at_hand(provisions.loaded.settings, os.environ, provider.strip())
    if not sources:
        raise WorldFault(NO_MODEL)
    cli.out.expect("models")
    cells: list[list[Text]] = []
    for source in sources:
        found = await shelf(provisions.supply, source)
        for offer in _shown(cli, found, every=bool(provider.strip())):
            price = f"{_rate(offer.input)} / {_rate(offer.output)}" if offer.input is not None else "unknown"
            tools, key = "yes" if offer.tools else "no", offer.key or "none needed"
            cells.append(row(offer.name, f"{offer.window:,}", tools, price, key))
        for offer in found.offers:
            cli.out.item("model", _fields(offer))
    if cells:
        cli.out.show(Fitted(MODELS, cells))
    cli.progress.note(f"\nTry one: {command(cli, 'models', 'check', 'NAME')}")


def _shown(cli: Invocation, found: Shelf, *, every: bool) -> list[Offer]:
    """The models that a person gets to see: all of a provider that was named, else the first that we know."""
    name = found.source.provider
    if found.trouble:
        then = "; these are the catalog's proposals" if found.offers else ""
        cli.progress.note(f"{name} {found.trouble.rstrip('.')}{then}.", style="yellow")
    if every or len(found.offers) <= MANY:
        return list(found.offers)
    shown = [offer for offer in found.offers if offer.known][:MANY] or list(found.offers[:MANY])
    cli.progress.note(f"{name} has {len(found.offers)}; all of them: {command(cli, 'models', 'list', name)}")
    return shown


def _rate(amount: int | None) -> str:
    return "?" if amount is None else f"{amount / MILLION:.2f}"


def _fields(offer: Offer) -> Data:
    prices = {"input_price": offer.input, "output_price": offer.output}
    dollars_ = {name: None if amount is None else amount / MILLION for name, amount in prices.items()}
    return {"name": offer.name, "window": offer.window, "tools": offer.tools, **dollars_, "key": offer.key}


async def models_check(
    cli: Invocation,
    model: Annotated[
        str, typer.Argument(metavar="NAME", help="provider:model, a role or a group. [default: the normal one]")
    ] = "",
) -> Exit:
    """Try a model with three tiny calls: streamed, whole, with a tool. Exit code 4 when it does not answer."""
    provisions = cli.means.provisions
    await provisions.look_around()
    names = provisions.supply.meaning(model.strip())
    models = [provisions.supply.bare(each) for each in names]
    cli.out.begin(models=list(names))
    cli.out.expect("trials")
    cap, most = provisions.loaded.settings.limits.cost, sum(bound(each) or 0 for each in models)
    if cap is not None and most > cap * MILLION:
        raise WorldFault(
            f"The check may cost {dollars(most)}, and your cap is ${cap:g}. Raise it with GREENROOM_MAX_COST."
        )
    works = [await _checked(cli, each) for each in models]
    if any(works):
        cli.progress.note(f"\nAsk it: {command(cli, 'ask', '--model', names[works.index(True)], 'QUESTION')}")
    return cli.out.result("ok" if all(works) else "failed", Exit.DONE if all(works) else Exit.PROVIDER)


async def _checked(cli: Invocation, model: Model) -> bool:
    """Whether the model answers in the way in which agents ask."""
    most = bound(model)
    cost = "its price is unknown" if most is None else f"at most {dollars(most)}" if most else "free of charge"
    cli.progress.note(f"{model.name}: three tiny calls, {cost}.", style="bold")
    found: list[Trial] = []
    async for trial in trials(model):
        found.append(trial)
        cli.out.item("trial", {"model": model.name, **_result(trial)})
    cli.out.show(Fitted(TRIALS, [_trial_row(trial) for trial in found]))
    for fault in dict.fromkeys(trial.fault for trial in found if trial.fault):
        cli.out.show(Text(f"  {fault}", style="red"))
    return not found[0].fault


def _trial_row(trial: Trial) -> list[Text]:
    works = Text("no", style="red") if trial.fault else Text("yes", style="green")
    first, whole = f"{trial.first:.2f} s" if trial.first else "", f"{trial.whole:.2f} s"
    used = trial.usage or Usage()
    tokens = f"{used.input + used.output:,}" if trial.usage is not None else "not told"
    return row(WAYS[trial.way], works, first, whole, tokens, "unknown" if used.money is None else dollars(used.money))


def _result(trial: Trial) -> Data:
    used = trial.usage
    return {
        "call": trial.way,
        "works": not trial.fault,
        "fault": trial.fault,
        "first": round(trial.first, 3),
        "seconds": round(trial.whole, 3),
        "tokens": None if used is None else used.input + used.output,
        "cost": None if used is None or used.money is None else used.money / MILLION,
    }


TWO_DOLLARS: Final = RunOptions(cost="2")


async def eval_live(
    cli: Invocation,
    *,
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="provider:model, a role or a group.")
    ] = "",
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="TASK", help="Only this task; again for more.")
    ] = None,
    options: RunOptions = TWO_DOLLARS,
) -> Exit:
    """Play fifteen small tasks: tools, edits, repair, hand-off, stopping, injection … Exit code 1 if one fails."""
    tasks = chosen(tuple(only or ()))
    options.apply(cli.means)
    provisions = cli.means.provisions
    await provisions.look_around()
    name, caps = provisions.settled(model.strip()), provisions.loaded.settings.limits
    refuse_unpriced(provisions.named(name), caps)
    cli.out.begin(model=name)
    cli.out.expect("verdicts")
    cli.progress.note(f"{name} · {len(tasks)} tasks · {describe_caps(caps)}", style="dim")
    verdicts: list[Verdict] = []
    async for verdict in play(provisions, name, caps.limits, tasks):
        verdicts.append(verdict)
        cli.out.item("verdict", _verdict_fields(verdict))
        cli.out.show(_line(verdict))
    passed, cost = sum(verdict.passed for verdict in verdicts), sum(verdict.money for verdict in verdicts)
    cli.out.show(Text(f"\n{passed} of {len(verdicts)} passed, {dollars(cost)}", style="bold"))
    if options.record is not None:
        cli.progress.note(f"All that was said is in {options.record}.")
    code = Exit.DONE if passed == len(verdicts) else Exit.FAILED
    return cli.out.result("ok" if code == Exit.DONE else "failed", code, passed=passed, cost=cost / MILLION)


def _line(verdict: Verdict) -> Text:
    sign, style = ("✓", "green") if verdict.passed else ("✗", "red")
    line = Text.assemble(
        (f"{sign} ", style), f"{verdict.task:<20} {verdict.seconds:5.1f} s  {dollars(verdict.money):>8}"
    )
    if not verdict.passed:
        line.append(f"  missed: {'; '.join(verdict.missed)}", style="red")
    if verdict.error:
        line.append(f"\n  {verdict.error}", style="dim")
    return line


def _verdict_fields(verdict: Verdict) -> Data:
    kept = {name: getattr(verdict, name) for name in ("task", "about", "passed", "error", "tokens")}
    spent = {"seconds": round(verdict.seconds, 3), "cost": verdict.money / MILLION}
    return {**kept, "missed": list(verdict.missed), **spent}
