"""Finding a chat again: by its id, or the newest one. A log that cannot be read is passed over."""

from __future__ import annotations

from greenroom.app.lookup import LAST, find
from greenroom.app.runtime import Runtime
from greenroom.app.talks.founding import FIRST
from greenroom.app.talks.names import CHAT
from greenroom.core.base.errors import Refused, Rejected, StoreFault
from greenroom.core.base.ids import TeamId

SHOWN = 5
"""Chats of which what was typed is offered again."""


async def chats(runtime: Runtime, *, most: int = SHOWN) -> list[TeamId]:
    """The newest chats, open or over."""
    found: list[TeamId] = []
    for info in reversed(await runtime.log.streams()):
        team = TeamId(info.stream)
        if info.head.version and await _kit(runtime, team) == CHAT:
            found.append(team)
        if len(found) >= most:
            break
    return found


async def find_chat(runtime: Runtime, name: str) -> TeamId | None:
    """The chat that is meant, if it can go on. None when the newest one is wanted and there is none."""
    if name.strip() == LAST:
        for team in await chats(runtime):
            if FIRST in (await runtime.world(team)).tasks:
                return team
        return None
    team = (await find(runtime, name)).team
    world = await runtime.world(team)
    if world.team.kit != CHAT:
        raise _refused("no_chat", f"{team!r} is no chat.", f"Go on with it: `greenroom resume {team}`.")
    if FIRST not in world.tasks:
        hint = f"Begin a new one with `greenroom chat`, or take it up at an earlier moment: `greenroom fork {team}`."
        raise _refused("chat_over", f"The chat {team!r} is over.", hint)
    return team


async def _kit(runtime: Runtime, team: TeamId) -> str:
    try:
        return (await runtime.world(team)).team.kit
    except StoreFault:
        return ""  # one that cannot be read does not keep anybody from the others


def _refused(code: str, why: str, hint: str) -> Refused:
    return Refused(Rejected(code=code, why=why, hint=hint))
