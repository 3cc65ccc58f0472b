"""All copies in which jobs were done on this machine, and what repositories keep of those jobs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from greenroom.adapters.git.workspace import is_known
from greenroom.adapters.git.worktrees import GitWorktrees
from greenroom.app.jobs.place import OWN, cache, workspace
from greenroom.app.jobs.words import WHY_LEFT, one_line
from greenroom.app.settings.home import home_folder
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import SCRATCH, Clashes, Kept, WorkspaceFault
from greenroom.core.ports.worktrees import Standing, Worktrees

NO_WAY_BACK: Final = "what was applied cannot be undone any more"


def copies() -> Worktrees:
    """Those of this person."""
    return GitWorktrees(cache())


async def of_run(run: str) -> list[Standing]:
    """Those of one run."""
    return [one for one in await copies().list() if one.run == run]


async def drop(run: str) -> None:
    """Take away the copies of a run, with what is in them; its commits stay in the repository."""
    for one in await of_run(run):
        await copies().clean(one.name, discard=True)


@record
class Trace:
    """What a repository keeps of a run that has no copy any more."""

    root: str
    kept: Kept


async def traces(roots: Iterable[str], standing: Iterable[Standing]) -> list[Trace]:
    """Those in these repositories, where these copies are standing; one that is gone has none."""
    copied = {one.run for one in standing}
    found = list[Trace]()
    for root in dict.fromkeys(roots):
        try:
            theirs = await workspace(Path(root))
            found += [Trace(root=theirs.root, kept=one) for one in await theirs.kept() if one.run not in copied]
        except WorkspaceFault:
            continue
    return list({(one.root, one.kept.run): one for one in found}.values())


async def uncopied(root: Path, standing: Iterable[Standing]) -> list[Trace]:
    """Work that is kept for a folder, that nobody has, and that is in none of these copies. By looking, nothing is made
    for a folder that is in no repository."""
    if not is_known(root, cache(), home_folder() / OWN, home=Path.home()):
        return []
    working = [one for one in standing if one.thread != SCRATCH]
    return [one for one in await traces([str(root)], working) if one.kept.unapplied]


async def wipe(trace: Trace, *, discard: bool) -> bool:
    """Delete it; False when there is work in it that nobody has, and that is not to go."""
    theirs = await workspace(Path(trace.root))
    return not isinstance(await theirs.forget(trace.kept.run, discard=discard), Clashes)


async def goes_with(root: Path, run: str) -> tuple[str, ...]:
    """What nobody has any more when a run is forgotten, in words: work, and the way back from what was applied."""
    files = [text for one in await of_run(run) for text in in_no_commit(one)]
    kept = [one for one in await (await workspace(root)).kept() if one.run == run]
    commits = [f"not applied: {text}" for one in kept for text in one.unapplied]
    return (*commits, *files, *((NO_WAY_BACK,) if any(one.applied for one in kept) else ()))


def in_no_commit(one: Standing) -> list[str]:
    """What lies in a copy, and nowhere else, in words."""
    return [
        *(f"in no commit: {one_line(path)}" for path in one.dirty),
        *(f"can be in none: {it}" for it in nowhere(one)),
    ]


def nowhere(one: Standing) -> list[str]:
    """What goes for good with a copy, and what it is."""
    return [f"{one_line(each.path)} ({WHY_LEFT[each.why]})" for each in one.left_out]


async def forget(root: Path, run: str) -> None:
    """Drop the copies of a run, and all that its repository keeps of it."""
    await drop(run)
    await (await workspace(root)).forget(run, discard=True)
