"""Where a run works: a worktree of the person's files as they were when it began, in which every step is a commit."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from platformdirs import user_cache_path

from greenroom.adapters.git.repository import locate
from greenroom.adapters.git.workspace import GitWorkspace, is_known
from greenroom.adapters.git.worktree import GitWorktrees
from greenroom.app.conversation.typed import is_secret
from greenroom.app.jobs.verdict import COMMIT, WHY_LEFT, one_line
from greenroom.app.settings.home import home_folder
from greenroom.app.settings.layers import load
from greenroom.app.toolset.redaction import without_secrets
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import record
from greenroom.core.ports.sandbox import Shown
from greenroom.core.ports.workspace import (
    SCRATCH,
    Clashes,
    Diff,
    Kept,
    Lent,
    Snapshot,
    Standing,
    WorkspaceFault,
    Worktree,
    Worktrees,
)
from greenroom.core.ports.workspace import Workspace as WorkspacePort
from greenroom.core.state.step import Step
from greenroom.core.state.team import Team

FOLDER: Final = "worktrees"
OWN: Final = "folders"
"""Where the history of folders is kept that are in no repository: beside the log, which nobody empties."""

MOST: Final = 20_000
"""Files of a folder that is no repository."""

ALWAYS_OUT: Final = frozenset({"node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox"})
THREAD: Final = "main"
LAYERS: Final = "layers"

History: TypeAlias = Callable[[TeamId], Awaitable[Sequence[Step]]]
"""All steps of a team that have ended, oldest first."""


def cache() -> Path:
    """Where copies lie, and what is known about them."""
    return user_cache_path("greenroom", appauthor=False) / FOLDER


async def workspace(root: Path) -> GitWorkspace:
    """The person's files, wherever a repository of theirs begins."""
    try:  # whose keys are known: the person's hooks, which git runs, do not get them
        providers = tuple(load({}, os.environ, root).settings.providers.values())
    except WorldFault:
        providers = ()  # settings that cannot be read have given nobody a key
    own, env = home_folder() / OWN, without_secrets(os.environ, providers)
    return await GitWorkspace.find(root, cache(), own=own, env=env, secret=lambda path: is_secret(PurePosixPath(path)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The person's files (`workspace`) as they were (`snapshot`), and the copy (`worktree`) that a `run` has of them,
    which commands see `at` the person's own place. `lent` is what the copy needs of theirs: packages, submodules; `git`
    lets commands look at its history."""

    run: str
    at: Path
    workspace: WorkspacePort
    snapshot: Snapshot
    worktree: Worktree
    lent: tuple[Lent, ...] = ()
    git: tuple[Shown, ...] = ()

    @property
    def folder(self) -> Path:
        """The copy of the folder that is worked in."""
        return Path(self.worktree.folder, self.snapshot.within)

    @property
    def shown(self) -> tuple[Shown, ...]:
        """What a command finds in the worktree that is not in it: what git ignores in the person's folder. What it
        writes there is kept beside the worktree, and goes with it."""
        layers = Path(self.worktree.folder).parent / LAYERS
        every = (*self.git, *(_layered(lent, layers) for lent in self.lent))
        # Seen from the repository's own folder; that may be one above the one that is worked in.
        within = Path(self.snapshot.within).parts
        top = self.at.parents[len(within) - 1] if within else None
        return tuple(shown if top is None else replace(shown, at=str(top / shown.at)) for shown in every)

    async def beside(self, worktree: Worktree) -> Place:
        """The same with another copy. What was made in this one and is in no commit is not there."""
        return replace(self, worktree=worktree, git=await worktree.view())

    async def diff(self) -> Diff:
        """All that was changed by now."""
        return await self.workspace.diff(self.snapshot.commit, await self.worktree.tip())


def _layered(lent: Lent, layers: Path) -> Shown:
    name = hashlib.sha256(lent.path.encode()).hexdigest()[:16]
    return Shown(source=lent.source, at=lent.path, layer=str(layers / name), hidden=lent.hidden)


async def refuse_too_wide(root: Path) -> None:
    """A folder without a repository is copied whole: `WorldFault` for one that nobody means to be copied."""
    if locate(root, home=Path.home()) is not None:
        return
    if root == Path.home() or await asyncio.to_thread(_has_more_than, root, MOST):
        raise WorldFault(
            f"{str(root)!r} is no repository, and has more than {MOST:,} files or is your home: too much for a copy. "
            "Go to a folder of its own, make it a repository (`git init`), or let it work there with --in-place."
        )


def _has_more_than(root: Path, most: int) -> bool:
    count = 0
    for _, folders, files in os.walk(root):
        folders[:] = [one for one in folders if one not in ALWAYS_OUT]
        count += len(files)
        if count > most:
            return True
    return False


async def opened(team: Team, history: History) -> Place:
    """The place of a run, as it was left; made when the run is new.

    One that was forked begins with what its origin began with, at the last commit that its own log has: whatever a kill
    left undone of that is done here, before anybody works. Where those files cannot be had any more, it is refused:
    others would not be those that were talked about.
    """
    root, run = Path(team.workspace), team.team_id
    theirs, snapshot = await begun(team, history)
    worktree = await theirs.open(run, THREAD, snapshot.commit)
    lent, git = tuple(await theirs.lent()), await worktree.view()
    return Place(run=run, at=root, workspace=theirs, snapshot=snapshot, worktree=worktree, lent=lent, git=git)


async def begun(team: Team, history: History) -> tuple[GitWorkspace, Snapshot]:
    """The person's files, and what they were when a run began; no copy is made of them."""
    run = team.team_id
    theirs, steps = await workspace(Path(team.workspace)), await history(run)
    if steps:
        await theirs.adopt(run, THREAD, team.origin.team_id if team.origin is not None else run, last_commit(steps))
    return theirs, await theirs.snapshot(run)


def last_commit(steps: Iterable[Step]) -> str:
    """The newest commit that these steps have made; empty if none has."""
    made = [str(one.result[COMMIT]) for one in steps if one.result and COMMIT in one.result]
    return made[-1] if made else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a run, as its repository keeps it, also when its worktree is gone: the person's files
    (`workspace`) as they were (`snapshot`), and its newest commit (`tip`)."""

    run: str
    workspace: WorkspacePort
    snapshot: Snapshot
    tip: str

    async def diff(self) -> Diff:
        """All that was changed by now."""
        return await self.workspace.diff(self.snapshot.commit, self.tip)


async def outcome(team: Team, history: History) -> Outcome:
    """That of a run. No worktree is made to look."""
    theirs, snapshot = await begun(team, history)
    tip = await theirs.tip(team.team_id, THREAD)
    return Outcome(run=team.team_id, workspace=theirs, snapshot=snapshot, tip=tip)


NO_WAY_BACK: Final = "what was applied cannot be undone any more"


def copies() -> Worktrees:
    return GitWorktrees(cache())


async def of_run(run: str) -> list[Standing]:
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
