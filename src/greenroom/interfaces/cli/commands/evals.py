"""`greenroom eval live`: fifteen small tasks for a real model, judged by code, under one cap."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from greenroom.app.evals import Verdict, chosen, play
from greenroom.interfaces.cli.asked.orders import EvalLive
from greenroom.interfaces.cli.display.rows import dollars
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.beginning import bounds, refuse_unpriced
from greenroom.interfaces.cli.runs.session import Desk

MILLION: Final = 1_000_000


async def eval_live(desk: Desk, order: EvalLive) -> Exit:
    """Play the tasks and say how the model did."""
    tasks = chosen(order.only)
    desk.means.cap(order.caps)
    desk.means.tape(order.tape)
    provisions = desk.means.provisions
    await provisions.look_around()
    name, caps = provisions.settled(order.model), provisions.loaded.settings.limits
    refuse_unpriced(provisions.named(name), caps)
    desk.out.begin(command="eval live", model=name)
    desk.out.expect("verdicts")
    desk.progress.note(f"{name} · {len(tasks)} tasks · {bounds(caps)}", style="dim")
    verdicts: list[Verdict] = []
    async for verdict in play(provisions, name, caps.limits, tasks):
        verdicts.append(verdict)
        desk.out.item("verdict", _fields(verdict))
        desk.out.show(_line(verdict))
    passed, cost = sum(one.passed for one in verdicts), sum(one.money for one in verdicts)
    desk.out.show(Text(f"\n{passed} of {len(verdicts)} passed, {dollars(cost)}", style="bold"))
    if order.tape.record is not None:
        desk.progress.note(f"All that was said is in {order.tape.record}.")
    code = Exit.DONE if passed == len(verdicts) else Exit.FAILED
    return desk.out.result("ok" if code == Exit.DONE else "failed", code, passed=passed, cost=cost / MILLION)


def _line(one: Verdict) -> Text:
    sign, style = ("✓", "green") if one.passed else ("✗", "red")
    line = Text.assemble((f"{sign} ", style), f"{one.task:<20} {one.seconds:5.1f} s  {dollars(one.money):>8}")
    if not one.passed:
        line.append(f"  missed: {'; '.join(one.missed)}", style="red")
    if one.error:
        line.append(f"\n  {one.error}", style="dim")
    return line


def _fields(one: Verdict) -> dict[str, object]:
    return {
        "task": one.task,
        "about": one.about,
        "passed": one.passed,
        "missed": list(one.missed),
        "error": one.error,
        "seconds": round(one.seconds, 3),
        "cost": one.money / MILLION,
        "tokens": one.tokens,
    }
