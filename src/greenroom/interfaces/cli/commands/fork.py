"""`greenroom fork`: a new team that begins as another one was."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from greenroom.app.lookup import find
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.ids import Id
from greenroom.interfaces.cli.running import command
from greenroom.interfaces.cli.session import Door, run


def fork(
    context: typer.Context,
    name: Id,
    *,
    at: Annotated[
        int | None, typer.Option("--at", min=1, metavar="N", help="Begin as it was at version N. [default: now]")
    ] = None,
) -> int:
    """Begin a new team as another one was at some version; the old one is not touched."""
    return run(context, partial(_fork, name=name, at=at))


async def _fork(door: Door, *, name: str, at: int | None) -> Exit:
    found = await find(door.runtime, name)
    new = await door.runtime.fork(found.team, at)
    door.out.show(new)
    door.progress.note(f"Look at it: {command(door, 'show', new)}   Let it work: {command(door, 'resume', new)}")
    return door.out.result("forked", Exit.DONE, team=new, origin=found.team, at=at)
