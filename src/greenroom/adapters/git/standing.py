"""All worktrees of one person, whichever repository they are of; and how one is taken away."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from greenroom.adapters.git import forgetting
from greenroom.adapters.git.finding import Repository, repository_of
from greenroom.adapters.git.house import House
from greenroom.adapters.git.opening import TREES, Paper, paper_of, take_down
from greenroom.adapters.git.refs import value_of
from greenroom.adapters.git.workspaces import OWN, own_repository
from greenroom.adapters.git.worktrees import GitWorktree
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
        paper = paper_of(place)
        if paper is not None and not standing.orphan and standing.dirty:
            worktree, _ = await self._opened(place, paper)
            await worktree.commit(
                Mark(run=paper.run, key=f"clean {name}", summary="What was there when it was cleaned")
            )
        await asyncio.to_thread(take_down, place, Path(paper.git) if paper else place)
        return standing

    def _place(self, name: str) -> Path:
        house, _, tree = name.partition("/")
        place = self._cache / house / TREES / tree
        if not house or not tree or {"..", "."} & {house, tree} or "/" in tree or not place.is_dir():
            raise WorkspaceFault("name", f"There is no worktree {name!r}. Those there are can be listed.")
        return place

    async def _standing(self, place: Path) -> Standing:
        name = f"{place.parent.parent.name}/{place.name}"
        paper = paper_of(place)
        if paper is None:
            why = "It was never finished: whoever made it was killed. Nobody has worked in it."
            return Standing(name=name, root="", folder=str(place / "tree"), orphan=why)
        told = Standing(
            name=name,
            root=paper.root,
            folder=str(place / "tree"),
            base=paper.base,
            run=paper.run,
            thread=paper.thread,
        )
        try:
            worktree, house = await self._opened(place, paper)
            tip = await worktree.tip()
            if paper.thread == SCRATCH:
                return evolve(told, tip=tip)
            unapplied = await forgetting.unapplied(house, paper.run, paper.base, [tip])
            if not (place / "tree").is_dir():
                return evolve(told, tip=tip, orphan=_deleted(paper.run, unapplied))
            lying = await worktree.lying()
        except WorkspaceFault as fault:
            files = await asyncio.to_thread(_files, place / "tree")
            return evolve(told, dirty=files, orphan=f"Its repository cannot be used. {fault}")
        found = {"dirty": lying.files[:MOST], "left_out": lying.left_out[:MOST]}
        return evolve(told, tip=tip, unapplied=tuple(unapplied), **found)

    async def _opened(self, place: Path, paper: Paper) -> tuple[GitWorktree, House]:
        folder = place.parent.parent
        house = await House.open(_repository(paper, folder), folder, self._env)
        if not await value_of(house, paper.base):
            raise WorkspaceFault("repository", f"{paper.root!r} does not have the commit {paper.base[:12]} any more.")
        return paper.opened(house, place), house


def _deleted(run: str, unapplied: Sequence[str]) -> str:
    """What is so where somebody has deleted the files of a copy themselves."""
    kept = "all that was committed there is applied"
    if unapplied:
        some = "1 commit that is" if len(unapplied) == 1 else f"{len(unapplied)} commits that are"
        kept = f"{some} not applied can still be taken over with `greenroom apply {run}`"
    return f"Its folder was deleted; {kept}. `greenroom workspaces clean` clears away what is left of it"


def _repository(paper: Paper, folder: Path) -> Repository:
    """The repository that a worktree is of, if it is still that one."""
    root = Path(paper.root)
    if not root.is_dir():
        raise WorkspaceFault("repository", f"{paper.root!r} is gone.")
    own = own_repository(root, Path(paper.git).parent) if _is_own(Path(paper.git), folder) else None
    repository = own or repository_of(root)
    if repository is None or str(repository.common) != paper.git:
        raise WorkspaceFault("repository", f"{paper.root!r} is another repository than it was.")
    return repository


def _is_own(git: Path, folder: Path) -> bool:
    """Whether it is ours, of a folder that is in no repository: it has the name of what we keep about that."""
    return git.name == OWN and git.parent.name == folder.name and git.is_dir()


def _files(tree: Path) -> tuple[str, ...]:
    """Some of the files that lie there, where nobody can say which are anybody's work."""
    found = []
    for folder, below, names in os.walk(tree):
        below.sort()
        found += [str(Path(folder, one).relative_to(tree)) for one in sorted(names) if one != ".git"]
        if len(found) >= MOST:
            break
    return tuple(found[:MOST])
