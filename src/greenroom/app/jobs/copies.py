"""All copies in which jobs were done on this machine."""

from __future__ import annotations

from greenroom.adapters.git.standing import GitWorktrees
from greenroom.app.jobs.place import cache
from greenroom.core.ports.workspace import Standing, Worktrees


def copies() -> Worktrees:
    """Those of this person."""
    return GitWorktrees(cache())


async def drop(run: str) -> list[Standing]:
    """Take away the copies of a run, with what is in them; its commits stay in the repository."""
    every = copies()
    mine = [one for one in await every.list() if one.run == run]
    for one in mine:
        await every.clean(one.name, discard=True)
    return mine
