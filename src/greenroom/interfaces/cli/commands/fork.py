"""`greenroom fork`: a new team that begins as another one was."""

from __future__ import annotations

from greenroom.app.lookup import find
from greenroom.core.base.errors import Refused, Rejected
from greenroom.interfaces.cli.asked.orders import Fork
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door


async def fork(door: Door, order: Fork) -> Exit:
    """Make the new team and say its id."""
    found, at = await find(door.runtime, order.name), order.at
    if found.task is not None:
        raise Refused(Rejected(code="whole_teams", why="Only whole teams are forked.", hint=f"Say {found.team}."))
    new = await door.runtime.fork(found.team, at)
    door.out.show(new)
    origin = (await door.runtime.world(new)).team.origin
    begun = origin.version if origin else at
    if at is not None and begun != at:
        door.progress.note(f"Version {at} is in the middle of a commit; the new team begins at version {begun}.")
    door.progress.note(f"Look at it: {command(door, 'show', new)}   Let it work: {command(door, 'resume', new)}")
    return door.out.result("forked", Exit.DONE, team=new, origin=found.team, at=begun)
