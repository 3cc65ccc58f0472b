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
        int | None,
        typer.Option(
            "--at", min=1, metavar="N", help="Begin as it was at version N, or at the commit before it. [default: now]"
        ),
    ] = None,
) -> int:
    """Begin a new team as another one was at some version; the old one is not touched."""
    return run(context, partial(_fork, name=name, at=at))


async def _fork(door: Door, *, name: str, at: int | None) -> Exit:
    found = await find(door.runtime, name)
    new = await door.runtime.fork(found.team, at)
    door.out.show(new)
    origin = (await door.runtime.world(new)).team.origin
    begun = origin.version if origin else at
    if at is not None and begun != at:
        door.progress.note(f"Version {at} is in the middle of a commit; the new team begins at version {begun}.")
    door.progress.note(f"Look at it: {command(door, 'show', new)}   Let it work: {command(door, 'resume', new)}")
    return door.out.result("forked", Exit.DONE, team=new, origin=found.team, at=begun)
