"""`greenroom eval live`: fifteen small tasks for a real model, judged by code, under one cap."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from rich.text import Text

from greenroom.app.evals import Verdict, chosen, play
from greenroom.interfaces.cli.context import Invocation
from greenroom.interfaces.cli.display.team import MILLION, dollars
from greenroom.interfaces.cli.exit_codes import Exit
from greenroom.interfaces.cli.options import RunOptions
from greenroom.interfaces.cli.runs.start import bounds, refuse_unpriced

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
    cli.means.use(options)
    provisions = cli.means.provisions
    await provisions.look_around()
    name, caps = provisions.settled(model.strip()), provisions.loaded.settings.limits
    refuse_unpriced(provisions.named(name), caps)
    cli.out.begin(command="eval live", model=name)
    cli.out.expect("verdicts")
    cli.progress.note(f"{name} · {len(tasks)} tasks · {bounds(caps)}", style="dim")
    verdicts: list[Verdict] = []
    async for verdict in play(provisions, name, caps.limits, tasks):
        verdicts.append(verdict)
        cli.out.item("verdict", _fields(verdict))
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


def _fields(verdict: Verdict) -> dict[str, object]:
    return {
        "task": verdict.task,
        "about": verdict.about,
        "passed": verdict.passed,
        "missed": list(verdict.missed),
        "error": verdict.error,
        "seconds": round(verdict.seconds, 3),
        "cost": verdict.money / MILLION,
        "tokens": verdict.tokens,
    }
