"""Finding an organisation in the log: by its name and workspace, or like every team by its id."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import count, takewhile
from pathlib import Path

from greenroom.app.clock import team_id_for
from greenroom.app.lookup import find
from greenroom.app.organisation.names import BASE, KIT
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import Refused, Rejected, StoreFault
from greenroom.core.base.ids import TeamId
from greenroom.core.state.world import World


async def organisations(runtime: Runtime) -> AsyncIterator[tuple[TeamId, World]]:
    """All that are not over, the newest first. A log that cannot be read hides no other."""
    for info in reversed(await runtime.log.streams()):
        if not info.head.version:
            continue
        team = TeamId(info.stream)
        try:
            world = await runtime.world(team)
        except StoreFault:
            continue
        if world.team.kit == KIT and BASE in world.tasks:
            yield team, world


async def founded(runtime: Runtime, root: Path, name: str) -> TeamId | None:
    """The organisation that the charter of this name in this workspace has become; None before it was founded.

    It is the first that is not over of the ids that its name and place give it: no other log is read.
    """
    for team in await _ids(runtime, str(root), name):
        with suppress(StoreFault):
            world = await runtime.world(team)
            its = (world.team.kit, world.team.name, world.team.workspace)
            if its == (KIT, name, str(root)) and BASE in world.tasks:
                return team
    return None


async def over(runtime: Runtime, root: Path, name: str) -> bool:
    """Whether the charter of this name in this workspace has become one that is over, and no other since then."""
    return bool(await _ids(runtime, str(root), name)) and await founded(runtime, root, name) is None


async def elsewhere(runtime: Runtime, root: Path, name: str) -> list[tuple[TeamId, Path]]:
    """Those of the same name that were founded in other workspaces, the newest first."""
    each = [(team, world.team) async for team, world in organisations(runtime)]
    return [(team, Path(one.workspace)) for team, one in each if one.name == name and one.workspace != str(root)]


async def _ids(runtime: Runtime, workspace: str, name: str) -> list[TeamId]:
    """Those of the ids that its name and place give it that are there."""
    known = {info.stream for info in await runtime.log.streams() if info.head.version}
    ids = (team_id_for(KIT, workspace, name, str(number)) for number in count(1))
    return list(takewhile(known.__contains__, ids))


async def found_by_id(runtime: Runtime, name: str) -> TeamId | None:
    """An organisation by its id, from wherever it is; None when it is no such id."""
    try:
        team = (await find(runtime, name)).team
    except Refused:
        return None
    world = await runtime.world(team)
    if world.team.kit != KIT:
        return None
    if BASE not in world.tasks:
        why = f"The organisation {world.team.name!r} ({team}) is over."
        raise Refused(Rejected(code="team_over", why=why, hint=f"`greenroom show {team}` has what it did."))
    return team
