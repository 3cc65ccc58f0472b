"""`greenroom du`, `gc`, `forget`: how much room the teams take, and giving it back."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from greenroom.app.lookup import find
from greenroom.core.base.errors import Refused, Rejected
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.ids import Id
from greenroom.interfaces.cli.running import command
from greenroom.interfaces.cli.session import Door, run
from greenroom.testing.demo import folder


def du(context: typer.Context) -> int:
    """Say how much room each team takes."""
    return run(context, _du)


async def _du(door: Door) -> Exit:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("team", no_wrap=True)
    for name in ("events", "log", "archive", "blobs", "files"):
        table.add_column(name, justify="right", no_wrap=True)
    infos = await door.runtime.log.streams()
    door.out.begin(command="du", home=str(door.home))
    for info in reversed(infos):
        files = weight(folder(door.home, info.stream))
        sizes = {"log": info.event_bytes, "archive": info.archive_bytes, "blobs": info.blob_bytes, "files": files}
        table.add_row(info.stream, f"{info.head.version:,}", *(size(number) for number in sizes.values()))
        door.out.item("team", {"team": info.stream, "events": info.head.version, **sizes})
    total = weight(door.home)
    if infos:
        door.out.show(table)
    door.out.show(f"{size(total)} in {door.home}")
    return door.out.result("ok", Exit.DONE, bytes=total, home=str(door.home))


def gc(context: typer.Context) -> int:
    """Give back the room that nothing needs any more."""
    return run(context, _gc)


async def _gc(door: Door) -> Exit:
    freed = await door.runtime.log.collect()
    door.out.show(f"{size(freed)} given back.")
    return door.out.result("ok", Exit.DONE, freed=freed)


def forget(
    context: typer.Context,
    name: Id,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Delete a team with everything that was logged of it. It cannot be taken back."""
    return run(context, partial(_forget, name=name, yes=yes))


async def _forget(door: Door, *, name: str, yes: bool) -> Exit:
    found = await find(door.runtime, name)
    if found.task is not None:
        raise Refused(Rejected(code="whole_teams", why="Only whole teams are forgotten.", hint=f"Say {found.team}."))
    events = (await door.runtime.log.head(found.team)).version
    if not yes and not _confirmed(f"Delete team {found.team} with its {events} events?"):
        why = f"Team {found.team} was not deleted."
        raise Refused(
            Rejected(code="not_confirmed", why=why, hint=f"`{command(door, 'forget', name, '--yes')}` does not ask.")
        )
    await door.runtime.log.forget(found.team)
    shutil.rmtree(folder(door.home, found.team), ignore_errors=True)
    door.out.show(f"Forgotten: {found.team}, {events} events.")
    return door.out.result("forgotten", Exit.DONE, team=found.team, events=events)


def _confirmed(question: str) -> bool:
    return sys.stdin.isatty() and typer.confirm(question, err=True)


def weight(place: Path) -> int:
    """The bytes of all files under a folder."""
    return sum(file.lstat().st_size for file in place.rglob("*") if file.is_file()) if place.is_dir() else 0


def size(number: int) -> str:
    """Bytes for people."""
    value = float(number)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1000
    return ""
