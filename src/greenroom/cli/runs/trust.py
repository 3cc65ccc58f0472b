"""What a workspace brings: who agrees to it, and what is said of the rest."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.text import Text

from greenroom.app.toolset.mcp import brought_servers
from greenroom.app.trust import Brought, Ledger, Standing, brought_by, own_ledger
from greenroom.app.workspace import current_folder
from greenroom.cli.context import Invocation, command
from greenroom.cli.render.output import harmless
from greenroom.cli.render.questions import confirm
from greenroom.core.base.records import record

STYLES: Final = {"agreed": "green", "changed": "yellow", "new": "yellow"}
QUESTION: Final = "[y] trust them  [n] go on without: "


@record
class Item:
    """One thing, and how a person stands to it."""

    brought: Brought
    standing: Standing


def items(root: Path, ledger: Ledger, more: Sequence[Brought] = ()) -> list[Item]:
    """All that a workspace brings, and `more` that it would have run."""
    folder = current_folder()  # notes count from there up
    here = folder if folder.is_relative_to(root) else root
    every = brought_by(root, (*brought_servers(root), *more), folder=here)
    stands = ledger.standing(root) if every else None
    return [Item(brought=thing, standing=stands(thing)) for thing in every] if stands is not None else []


def open_ones(some: Sequence[Item]) -> list[Brought]:
    """Those that nobody has agreed to, as they are now."""
    return [one.brought for one in some if one.standing != "agreed"]


def settle(cli: Invocation, root: Path) -> None:
    """Before a run: ask about what nobody has agreed to. A no holds for this run; without a person it is only said."""
    ledger = own_ledger()
    found = [one for one in items(root, ledger) if one.standing != "agreed"]
    if not found:
        return
    if not cli.attended:
        for told in _left(found):
            cli.progress.note(f"! {told}: {command(cli, 'trust')}", style="yellow")
        return
    cli.progress.note("This workspace brings what could act in your name, and you have not agreed to it:")
    for line in lines(found):
        cli.progress.note(line.plain)
    if confirm(QUESTION):
        ledger.agree(root, open_ones(found))


def _left(found: Sequence[Item]) -> Iterator[str]:
    notes = [one.brought.name for one in found if one.brought.kind == "notes"]
    count = len(found) - len(notes)
    if count:
        what, them = ("1 thing", "it") if count == 1 else (f"{count} things", "them")
        verb = "is" if count == 1 else "are"
        yield f"{what} that this workspace brings {verb} left out, since nobody has agreed to {them}"
    if notes:
        named, verb = " and ".join(notes), "is" if len(notes) == 1 else "are"
        yield f"{named} {verb} taken as data and not as instructions, since nobody has agreed to that yet"


def lines(some: Sequence[Item]) -> Iterator[Text]:
    """A line for each: never cut, for what is not read cannot be agreed to."""
    width = max((len(one.brought.name) for one in some), default=0)
    for one in some:
        thing = one.brought
        text = Text(f"{one.standing:8}", style=STYLES[one.standing])
        text.append(f"{thing.kind:9} {_plain(thing.name):{min(width, 24)}}  ", style="default")
        yield text.append(_plain(thing.shown), style="dim")


def at_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _plain(text: str) -> str:
    """On one line, without what steers a terminal."""
    return harmless(text.replace("\n", " ↵ "))
