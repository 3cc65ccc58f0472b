"""Where a job is done: a copy of the person's files as they were when it began, in which every step is a commit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from greenroom.abilities.checks.meddling import Changed
from greenroom.adapters.git.finding import repository_of
from greenroom.adapters.git.workspaces import GitWorkspace
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.sandbox import Shown
from greenroom.core.ports.workspace import Diff, Lent, Snapshot, Worktree
from greenroom.core.ports.workspace import Workspace as WorkspacePort

FOLDER: Final = "worktrees"
MOST: Final = 20_000
"""Files of a folder that is no repository."""

ALWAYS_OUT: Final = frozenset({"node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox"})
THREAD: Final = "main"


def cache() -> Path:
    """Where copies lie, and what is known about them."""
    return user_cache_path("greenroom", appauthor=False) / FOLDER


async def workspace(root: Path) -> GitWorkspace:
    """The person's files, wherever a repository of theirs begins."""
    return await GitWorkspace.find(root, cache())


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The person's files (`workspace`) as they were (`snapshot`), and the copy (`worktree`). `lent` is what the copy
    needs of theirs: packages, submodules; `git` lets commands look at its history."""

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
        """What a command finds in the copy that is not in it."""
        return (*self.git, *(Shown(source=one.source, at=one.path) for one in self.lent))

    async def diff(self) -> Diff:
        """All that was changed by now."""
        return await self.workspace.diff(self.snapshot.commit, await self.worktree.tip())

    async def changes(self) -> list[str]:
        """The paths of all files that were changed by now."""
        return [one.path for one in (await self.diff()).changes]

    async def contents(self, paths: Sequence[str]) -> list[Changed]:
        """What was in these files, and is now."""
        before = await self.workspace.contents(self.snapshot.commit, paths)
        after = await self.workspace.contents(await self.worktree.tip(), paths)
        return [Changed(path=one, before=before.get(one), after=after.get(one)) for one in paths]


async def refuse_too_wide(root: Path) -> None:
    """A folder without a repository is copied whole: `WorldFault` for one that nobody means to be copied."""
    if repository_of(root, home=Path.home()) is not None:
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


async def opened(root: Path, run: str) -> Place:
    """The place of a run, as it was left; made when the run is new."""
    theirs = await workspace(root)
    snapshot = await theirs.snapshot(run)
    worktree = await theirs.open(run, THREAD, snapshot.commit)
    return Place(
        workspace=theirs,
        snapshot=snapshot,
        worktree=worktree,
        lent=tuple(await theirs.lent()),
        git=await worktree.view() if not snapshot.within else (),
    )
