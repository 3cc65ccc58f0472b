"""`greenroom show`: a team as it is now."""

from __future__ import annotations

from functools import partial

import typer

from greenroom.app.lookup import find
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.ids import Id
from greenroom.interfaces.cli.portrait import fields, portray, rendered
from greenroom.interfaces.cli.running import command
from greenroom.interfaces.cli.session import Door, run


def show(context: typer.Context, name: Id) -> int:
    """Show a team (or one task of it): tasks, agents, messages, costs."""
    return run(context, partial(_show, name=name))


async def _show(door: Door, *, name: str) -> Exit:
    found = await find(door.runtime, name)
    portrait = await portray(door, found.team)
    holder = await door.runtime.log.holder(found.team)
    owner = holder.owner if holder else None
    door.out.begin(team=found.team, command="show")
    how = f"version {portrait.teller.version} · " + (f"runs in {owner}" if owner else "nobody runs it")
    door.out.show(*rendered(portrait, how, found.task))
    if portrait.teller.world.tasks and owner is None:
        door.progress.note(f"\nGo on with: {command(door, 'resume', found.team)}")
    else:
        door.progress.note(f"\nThe whole story: {command(door, 'replay', name)}")
    return door.out.result("ok", Exit.DONE, **fields(portrait, owner, found.task))
