"""`greenroom cost`: what runs, agents or models have cost, from the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rich.text import Text

from greenroom.app.cost import Account, Sum, summed, total
from greenroom.app.lookup import find
from greenroom.core.base.errors import StoreFault
from greenroom.core.base.ids import TeamId
from greenroom.interfaces.cli.asked.orders import Cost
from greenroom.interfaces.cli.display.rows import dollars
from greenroom.interfaces.cli.display.tables import Column, Fitted, row
from greenroom.interfaces.cli.display.words import shorten
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door

MILLION: Final = 1_000_000


async def cost(door: Door, order: Cost) -> Exit:
    """A row each, and the sum."""
    teams = [(await find(door.runtime, order.name)).team] if order.name else await _all(door)
    accounts = [found for team in teams if (found := await _account(door, team)) is not None]
    rows = summed(accounts, order.by)
    every = total(rows.values())
    door.out.begin(command="cost", by=order.by)
    door.out.expect("rows")
    for name, one in rows.items():
        door.out.item("row", {order.by: name, **_fields(one)})
    if not rows:
        door.progress.note(f"No model was asked yet. Try: {command(door, 'ask', 'QUESTION')}")
    elif door.out.text:
        names = {str(one.team): one.name for one in accounts} if order.by == "run" else {}
        door.out.show(_table(rows, every, order.by, names))
    for line in remarks(every):
        door.progress.note(line, style="yellow")
    return door.out.result("ok", Exit.DONE, by=order.by, **_fields(every))


async def _all(door: Door) -> Sequence[TeamId]:
    return [TeamId(info.stream) for info in reversed(await door.runtime.log.streams()) if info.head.version]


async def _account(door: Door, team: TeamId) -> Account | None:
    found = Account(team)
    try:
        async for told in door.runtime.events(team):
            found.take(told.event)
    except StoreFault as error:
        # One log that cannot be read does not hide the others.
        door.progress.note(str(error), style="red")
        return None
    return found


def _fields(one: Sum) -> dict[str, object]:
    """For programs. A cost of which a part is unknown is the part that is known."""
    return {
        "cost": one.spent.money / MILLION if one.unpriced < one.calls or not one.calls else None,
        "tokens": one.spent.tokens,
        "calls": one.calls,
        "unpriced_calls": one.unpriced,
        "reserved_calls": one.reserved,
    }


def _table(rows: Mapping[str, Sum], every: Sum, by: str, names: Mapping[str, str]) -> Fitted:
    """A table; runs have a name too."""
    named = (Column(name="team"), Column(name="task", gives=True, needs=60)) if names else (Column(name=by),)
    figures = tuple(Column(name=name, right=True) for name in ("calls", "tokens", "cost"))
    cells = [row(name, *_name(names, name), *_figures(one)) for name, one in rows.items()]
    if len(rows) > 1:
        cells.append(row(Text("together", style="bold"), *([""] if names else []), *_figures(every)))
    return Fitted((*named, *figures), cells)


def _name(names: Mapping[str, str], team: str) -> list[str]:
    return [shorten(names.get(team, ""), 48)] if names else []


def _figures(one: Sum) -> tuple[str, str, str]:
    return f"{one.calls:,}", f"{one.spent.tokens:,}", price(one)


def price(one: Sum) -> str:
    """What is known of a cost, and that not all of it is."""
    if not one.unpriced:
        return dollars(one.spent.money)
    return f"{dollars(one.spent.money)} + unknown" if one.unpriced < one.calls else "unknown"


def remarks(every: Sum) -> list[str]:
    """What one must know to read the figures."""
    found = []
    if every.reserved:
        whose = "its" if every.reserved == 1 else "their"
        found.append(f"Includes {calls(every.reserved, 'interrupted ')} counted at {whose} reservation.")
    if every.unpriced:
        found.append(f"The price of {calls(every.unpriced)} is unknown. Prices can be set in your config.toml.")
    return found


def calls(count: int, kind: str = "") -> str:
    """So many calls."""
    return f"1 {kind}call" if count == 1 else f"{count:,} {kind}calls"
