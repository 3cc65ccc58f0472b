"""All worktrees of one person, of any repository; and how one is taken away."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from greenroom.adapters.git import runs
from greenroom.adapters.git.refs import value_of
from greenroom.adapters.git.repository import Layout, Repository, locate
from greenroom.adapters.git.workspace import OWN, own_layout
from greenroom.adapters.git.worktree import TREES, GitWorktree, WorktreeRecord, read_record, take_down
from greenroom.core.base.records import evolve
from greenroom.core.ports.workspace import SCRATCH, Clash, Clashes, Mark, WorkspaceFault
from greenroom.core.ports.worktrees import Standing

MOST = 200
"""Files of one worktree that are named."""


class GitWorktrees:
    """Those in one folder of the user's cache."""

    def __init__(self, cache: Path, env: Mapping[str, str] | None = None) -> None:
        self._cache = cache
        self._env = dict(os.environ if env is None else env)

    async def list(self) -> Sequence[Standing]:
        """Those there are."""
        return [await self._standing(place) for place in sorted(self._cache.glob(f"*/{TREES}/*")) if place.is_dir()]

    async def clean(self, name: str, *, discard: bool = False) -> Standing | Clashes:
        """Take one away."""
        place = self._place(name)
        standing = await self._standing(place)
        if standing.precious and not discard:
            commits = [Clash(path="", why=f"not applied: {one}") for one in standing.unapplied]
            files = [Clash(path=one, why="in no commit") for one in standing.dirty]
            nowhere = [Clash(path=one.path, why="can be in no commit") for one in standing.left_out]
            return Clashes(clashes=(*commits, *files, *nowhere))
        about = read_record(place)
        if about is not None and not standing.orphan and standing.dirty:
            worktree, _ = await self._opened(place, about)
            await worktree.commit(
                Mark(run=about.run, key=f"clean {name}", summary="What was there when it was cleaned")
            )
        await asyncio.to_thread(take_down, place, Path(about.git) if about else place)
        return standing

    def _place(self, name: str) -> Path:
        house, _, tree = name.partition("/")
        place = self._cache / house / TREES / tree
        if not house or not tree or {"..", "."} & {house, tree} or "/" in tree or not place.is_dir():
            raise WorkspaceFault("name", f"There is no worktree {name!r}. Those there are can be listed.")
        return place

    async def _standing(self, place: Path) -> Standing:
        name = f"{place.parent.parent.name}/{place.name}"
        about = read_record(place)
        if about is None:
            why = "It was never finished: whoever made it was killed. Nobody has worked in it."
            return Standing(name=name, root="", folder=str(place / "tree"), orphan=why)
        told = Standing(
            name=name,
            root=about.root,
            folder=str(place / "tree"),
            base=about.base,
            run=about.run,
            thread=about.thread,
        )
        try:
            worktree, repository = await self._opened(place, about)
            tip = await worktree.tip()
            if about.thread == SCRATCH:
                return evolve(told, tip=tip)
            unapplied = await runs.unapplied(repository, about.run, about.base, [tip])
            if not (place / "tree").is_dir():
                return evolve(told, tip=tip, orphan=_deleted(about.run, unapplied))
            lying, others = await worktree.uncommitted()
        except WorkspaceFault as fault:
            files = await asyncio.to_thread(_files, place / "tree")
            return evolve(told, dirty=files, orphan=f"Its repository cannot be used. {fault}")
        left_out = tuple(item for item in others if item.why != "environment")[:MOST]
        return evolve(told, tip=tip, unapplied=tuple(unapplied), dirty=tuple(lying[:MOST]), left_out=left_out)

    async def _opened(self, place: Path, about: WorktreeRecord) -> tuple[GitWorktree, Repository]:
        folder = place.parent.parent
        repository = await Repository.open(_layout(about, folder), folder, self._env)
        if not await value_of(repository, about.base):
            raise WorkspaceFault("repository", f"{about.root!r} does not have the commit {about.base[:12]} any more.")
        return GitWorktree(repository, place, about), repository


def _deleted(run: str, unapplied: Sequence[str]) -> str:
    """What is so where somebody has deleted the files of a copy themselves."""
    kept = "all that was committed there is applied"
    if unapplied:
        some = "1 commit that is" if len(unapplied) == 1 else f"{len(unapplied)} commits that are"
        kept = f"{some} not applied can still be taken over with `greenroom apply {run}`"
    return f"Its folder was deleted; {kept}. `greenroom workspaces clean` clears away what is left of it"


def _layout(about: WorktreeRecord, folder: Path) -> Layout:
    """The repository that a worktree is of, if it is still that one."""
    root = Path(about.root)
    if not root.is_dir():
        raise WorkspaceFault("repository", f"{about.root!r} is gone.")
    git = Path(about.git)
    is_ours = git.name == OWN and git.parent.name == folder.name and git.is_dir()  # of a folder in no repository
    own = own_layout(root, git.parent) if is_ours else None
    layout = own or locate(root)
    if layout is None or str(layout.common) != about.git:
        raise WorkspaceFault("repository", f"{about.root!r} is another repository than it was.")
    return layout


def _files(tree: Path) -> tuple[str, ...]:
    """Some of the files that lie there, where nobody can say which are anybody's work."""
    found = []
    for folder, below, names in os.walk(tree):
        below.sort()
        found += [str(Path(folder, one).relative_to(tree)) for one in sorted(names) if one != ".git"]
        if len(found) >= MOST:
            break
    return tuple(found[:MOST])
