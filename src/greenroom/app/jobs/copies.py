"""All copies in which jobs were done on this machine, and what repositories keep of those jobs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from greenroom.adapters.git.standing import GitWorktrees
from greenroom.app.jobs.place import cache, workspace
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import Clashes, Kept, WorkspaceFault
from greenroom.core.ports.worktrees import Standing, Worktrees


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


@record
class Trace:
    """What a repository keeps of a run that has no copy any more."""

    root: str
    kept: Kept


async def traces(roots: Iterable[str]) -> list[Trace]:
    """Those in these repositories; one that is gone has none."""
    standing = {one.run for one in await copies().list()}
    found = list[Trace]()
    for root in dict.fromkeys(roots):
        try:
            theirs = await workspace(Path(root))
            found += [Trace(root=theirs.root, kept=one) for one in await theirs.kept() if one.run not in standing]
        except WorkspaceFault:
            continue
    return list({(one.root, one.kept.run): one for one in found}.values())


async def wipe(trace: Trace, *, discard: bool) -> bool:
    """Delete it; False when there is work in it that nobody has, and that is not to go."""
    theirs = await workspace(Path(trace.root))
    return not isinstance(await theirs.forget(trace.kept.run, discard=discard), Clashes)


async def unapplied(root: Path, run: str) -> tuple[str, ...]:
    """What was done in a run and nobody has, in words."""
    dirty = [path for one in await copies().list() if one.run == run for path in one.dirty]
    commits = [text for one in await (await workspace(root)).kept() if one.run == run for text in one.unapplied]
    return (*(f"not applied: {one}" for one in commits), *(f"in no commit: {one}" for one in dirty))


async def forget(root: Path, run: str) -> None:
    """Drop the copies of a run, and all that its repository keeps of it."""
    await drop(run)
    await (await workspace(root)).forget(run, discard=True)
