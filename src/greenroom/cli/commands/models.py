"""`greenroom models` and `eval`: list, check and evaluate models."""

from __future__ import annotations

import os
from typing import Annotated, Final

import typer
from rich.text import Text

from greenroom.app.conversation.start import refuse_unpriced
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR, format_dollars
from greenroom.app.evals import EvalResult, run_tasks, select_tasks
from greenroom.app.messages import translate
from greenroom.app.model_catalog import (
    ModelOffer,
    ModelTrial,
    ProviderModels,
    estimate_max_cost,
    find_sources,
    list_models,
    run_trials,
)
from greenroom.app.model_registry import NO_MODEL_MESSAGE
from greenroom.app.run_plan import describe_limits
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.options import RunOptions
from greenroom.cli.render.output import Column, FittedTable, make_row
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data
from greenroom.core.ports.model import Model, Usage

MAX_MODELS_SHOWN: Final = 20  # models listed per provider, unless a provider is named
MODEL_COLUMNS: Final = (
    Column(name="model"),
    Column(name="window", right=True, min_terminal_width=60),
    Column(name="tools", min_terminal_width=70),
    Column(name="$ in / out per million", right=True, min_terminal_width=50),
    Column(name="key", style="dim", min_terminal_width=80),
)
TRIAL_COLUMNS: Final = (
    Column(name="call"),
    Column(name="works"),
    *(Column(name=name, right=True, min_terminal_width=60) for name in ("first word", "all", "tokens", "cost")),
)


async def models_list(
    cli: Invocation,
    provider: Annotated[str, typer.Argument(metavar="PROVIDER", help="List only this provider, like openai.")] = "",
) -> None:
    """List the models you can use, with their prices.

    Prices are per million tokens. You also see the window of a model and where its key comes from.

    Examples:
      greenroom models list
      greenroom models list openai

    Exit codes: 0; 2; 3.
    """
    provisions = cli.app.model_session
    sources = await find_sources(provisions.loaded_settings.settings, os.environ, provider.strip())
    if not sources:
        raise WorldFault(NO_MODEL_MESSAGE)
    cli.out.expect("models")
    cells: list[list[Text]] = []
    for source in sources:
        catalog_shelf = await list_models(provisions.registry, source)
        for offer in _choose_shown(cli, catalog_shelf, show_all=bool(provider.strip())):
            price = (
                f"{_format_price(offer.input)} / {_format_price(offer.output)}"
                if offer.input is not None
                else translate("runs.unknown")
            )
            tools = translate("counts.yes" if offer.tools else "counts.no")
            key = offer.key or translate("models.no_key_needed")
            cells.append(make_row(offer.name, f"{offer.window:,}", tools, price, key))
        for offer in catalog_shelf.offers:
            cli.out.item("model", _offer_fields(offer))
    if cells:
        cli.out.show(FittedTable(MODEL_COLUMNS, cells))
    command = render_command(cli, "models", "check", "NAME")
    cli.progress.note(f"\n{translate('models.test_one', command=command)}")


def _choose_shown(cli: Invocation, catalog_shelf: ProviderModels, *, show_all: bool) -> list[ModelOffer]:
    """Return the models to show: all of a named provider, else the first known ones."""
    name = catalog_shelf.source.provider
    if catalog_shelf.trouble:
        key = "models.trouble_catalog" if catalog_shelf.offers else "models.trouble"
        cli.progress.note(translate(key, name=name, why=catalog_shelf.trouble.rstrip(".")), style="yellow")
    if show_all or len(catalog_shelf.offers) <= MAX_MODELS_SHOWN:
        return list(catalog_shelf.offers)
    shown = [offer for offer in catalog_shelf.offers if offer.known][:MAX_MODELS_SHOWN] or list(
        catalog_shelf.offers[:MAX_MODELS_SHOWN]
    )
    command = render_command(cli, "models", "list", name)
    cli.progress.note(translate("models.list_all", name=name, count=len(catalog_shelf.offers), command=command))
    return shown


def _format_price(amount: int | None) -> str:
    return "?" if amount is None else f"{amount / MILLIONTHS_PER_DOLLAR:.2f}"


def _offer_fields(offer: ModelOffer) -> Data:
    prices = {"input_price": offer.input, "output_price": offer.output}
    dollars_ = {name: None if amount is None else amount / MILLIONTHS_PER_DOLLAR for name, amount in prices.items()}
    return {"name": offer.name, "window": offer.window, "tools": offer.tools, **dollars_, "key": offer.key}


async def models_check(
    cli: Invocation,
    model: Annotated[
        str, typer.Argument(metavar="NAME", help="provider:model, a role or a group. [default: the default model]")
    ] = "",
) -> Exit:
    """Test a model with three small calls.

    One call is streamed, one is not, one uses a tool. Without a name the default model is tested.

    Examples:
      greenroom models check
      greenroom models check openai:gpt-5.5

    Exit codes: 0; 2; 3; 4 the model does not answer.
    """
    provisions = cli.app.model_session
    await provisions.find_local_servers()
    names = provisions.registry.resolve_models(model.strip())
    models = [provisions.registry.make_bare_model(model_name) for model_name in names]
    cli.out.begin(models=list(names))
    cli.out.expect("trials")
    cap = provisions.loaded_settings.settings.limits.cost
    max_cost = sum(estimate_max_cost(model_name) or 0 for model_name in models)
    if cap is not None and max_cost > cap * MILLIONTHS_PER_DOLLAR:
        raise WorldFault("models.check_over_limit", dollars=format_dollars(max_cost), cap=cap)
    works = [await _try_model(cli, model_name) for model_name in models]
    if any(works):
        command = render_command(cli, "ask", "--model", names[works.index(True)], "QUESTION")
        cli.progress.note(f"\n{translate('models.ask_it', command=command)}")
    return cli.out.result("ok" if all(works) else "failed", Exit.DONE if all(works) else Exit.PROVIDER)


async def _try_model(cli: Invocation, model: Model) -> bool:
    """Run the test calls; return whether the model answers a streamed call."""
    max_cost = estimate_max_cost(model)
    key = "models.calls_unpriced" if max_cost is None else "models.calls_priced" if max_cost else "models.calls_free"
    cli.progress.note(translate(key, name=model.name, money=format_dollars(max_cost or 0)), style="bold")
    results: list[ModelTrial] = []
    async for trial in run_trials(model):
        results.append(trial)
        cli.out.item("trial", {"model": model.name, **_trial_fields(trial)})
    cli.out.show(FittedTable(TRIAL_COLUMNS, [_render_trial(trial) for trial in results]))
    for fault in dict.fromkeys(trial.fault for trial in results if trial.fault):
        cli.out.show(Text(f"  {fault}", style="red"))
    return not results[0].fault


def _render_trial(trial: ModelTrial) -> list[Text]:
    works = Text(translate("counts.no" if trial.fault else "counts.yes"), style="red" if trial.fault else "green")
    first, whole = f"{trial.first:.2f} s" if trial.first else "", f"{trial.whole:.2f} s"
    usage = trial.usage or Usage()
    tokens = f"{usage.input + usage.output:,}" if trial.usage is not None else translate("runs.unknown")
    return make_row(
        translate(f"models.call_{trial.way}"),
        works,
        first,
        whole,
        tokens,
        translate("runs.unknown") if usage.money is None else format_dollars(usage.money),
    )


def _trial_fields(trial: ModelTrial) -> Data:
    usage = trial.usage
    return {
        "call": trial.way,
        "works": not trial.fault,
        "fault": trial.fault,
        "first": round(trial.first, 3),
        "seconds": round(trial.whole, 3),
        "tokens": None if usage is None else usage.input + usage.output,
        "cost": None if usage is None or usage.money is None else usage.money / MILLIONTHS_PER_DOLLAR,
    }


TWO_DOLLARS: Final = RunOptions(cost="2")


async def eval_live(
    cli: Invocation,
    *,
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="provider:model, a role or a group.")
    ] = "",
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="TASK", help="Run only this task. Repeatable.")
    ] = None,
    options: RunOptions = TWO_DOLLARS,
) -> Exit:
    """Score a model on fifteen small tasks.

    They test tools, edits, repair, hand-off, stopping and prompt injection. The limit is 2 dollars, unless --max-cost.

    Examples:
      greenroom eval live --model openai:gpt-5.5
      greenroom eval live --max-cost 0.50 --record eval.jsonl

    Exit codes: 0; 1 a task failed; 2; 3; 4.
    """
    tasks = select_tasks(tuple(only or ()))
    options.apply(cli.app)
    provisions = cli.app.model_session
    await provisions.find_local_servers()
    name, caps = provisions.resolve_alias(model.strip()), provisions.loaded_settings.settings.limits
    refuse_unpriced(provisions.get_model(name), caps.limits)
    cli.out.begin(model=name)
    cli.out.expect("verdicts")
    cli.progress.note(
        translate("models.eval_heading", name=name, count=len(tasks), limits=describe_limits(caps)), style="dim"
    )
    verdicts: list[EvalResult] = []
    async for verdict in run_tasks(provisions, name, caps.limits, tasks):
        verdicts.append(verdict)
        cli.out.item("verdict", _verdict_fields(verdict))
        cli.out.show(_render_verdict(verdict))
    passed, cost = sum(verdict.has_passed for verdict in verdicts), sum(verdict.money for verdict in verdicts)
    known = {"passed": passed, "count": len(verdicts), "money": format_dollars(cost)}
    cli.out.show(Text(f"\n{translate('models.eval_result', **known)}", style="bold"))
    if options.record is not None:
        cli.progress.note(translate("models.recorded", path=options.record))
    code = Exit.DONE if passed == len(verdicts) else Exit.FAILED
    return cli.out.result(
        "ok" if code == Exit.DONE else "failed", code, passed=passed, cost=cost / MILLIONTHS_PER_DOLLAR
    )


def _render_verdict(verdict: EvalResult) -> Text:
    sign, style = ("✓", "green") if verdict.has_passed else ("✗", "red")
    line = Text.assemble(
        (f"{sign} ", style), f"{verdict.task:<20} {verdict.seconds:5.1f} s  {format_dollars(verdict.money):>8}"
    )
    if not verdict.has_passed:
        line.append(f"  {translate('models.missed', what='; '.join(verdict.missed))}", style="red")
    if verdict.error:
        line.append(f"\n  {verdict.error}", style="dim")
    return line


def _verdict_fields(verdict: EvalResult) -> Data:
    return {
        "task": verdict.task,
        "about": verdict.about,
        "passed": verdict.has_passed,
        "error": verdict.error,
        "tokens": verdict.tokens,
        "missed": list(verdict.missed),
        "seconds": round(verdict.seconds, 3),
        "cost": verdict.money / MILLIONTHS_PER_DOLLAR,
    }
