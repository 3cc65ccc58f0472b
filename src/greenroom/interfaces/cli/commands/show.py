"""`greenroom show`: a team as it is now."""

from __future__ import annotations

from greenroom.app.lookup import find
from greenroom.interfaces.cli.asked.orders import Show
from greenroom.interfaces.cli.commands.portrait import fields, portray, rendered
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door


async def show(door: Door, order: Show) -> Exit:
    """Print a portrait of the team."""
    found = await find(door.runtime, order.name)
    portrait = await portray(door, found.team)
    holder = await door.runtime.log.holder(found.team)
    owner = holder.owner if holder else None
    door.out.begin(team=found.team, command="show")
    how = f"version {portrait.teller.version} · " + (f"runs in {owner}" if owner else "nobody runs it")
    door.out.show(*rendered(portrait, how, found.task))
    if portrait.teller.world.tasks and owner is None:
        door.progress.note(f"\nGo on with: {command(door, 'resume', found.team)}")
    else:
        door.progress.note(f"\nThe whole story: {command(door, 'replay', order.name)}")
    if portrait.steps:
        door.progress.note(f"Its steps, to go back to one: {command(door, 'rewind', found.team)}")
    return door.out.result("ok", Exit.DONE, **fields(portrait, owner, found.task))
