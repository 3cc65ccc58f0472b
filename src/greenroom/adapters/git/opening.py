"""How a worktree comes to be: in our folder and never in the repository, locked, with no hook run.

A worktree that was not finished, because we were killed, has no paper (`about.json`) and is made anew: nobody has
worked in it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from greenroom.adapters.git.closed_folders import remove_tree
from greenroom.adapters.git.files import read_data, told, write_data
from greenroom.adapters.git.house import House
from greenroom.adapters.git.locks import alone
from greenroom.adapters.git.names import base_ref, part, thread_ref
from greenroom.adapters.git.refs import commit_of, value_of
from greenroom.adapters.git.seeding import Listed, absent, listing, skip
from greenroom.adapters.git.worktrees import GitWorktree
from greenroom.core.base.records import record, whole
from greenroom.core.ports.workspace import WorkspaceFault

PAPER: Final = "about.json"
TREES: Final = "trees"
WORKERS: Final = max(2, min(8, os.cpu_count() or 2))
LINK: Final = "gitdir: "


@record
class Paper:
    """What is written down about a worktree. `admin` is the folder that git keeps about it, `submodules` are those that
    are empty in it."""

    run: str
    thread: str
    base: str
    root: str
    git: str
    admin: str = ""
    sparse: bool = False
    within: str = ""
    submodules: tuple[str, ...] = ()

    def opened(self, house: House, place: Path) -> GitWorktree:
        """The worktree that it is about."""
        return GitWorktree(
            house,
            place,
            run=self.run,
            thread=self.thread,
            base=self.base,
            sparse=self.sparse,
            submodules=self.submodules,
        )


def paper_of(place: Path) -> Paper | None:
    """What is written about the worktree in a folder of ours; None for what is none, or was not finished."""
    found = read_data(place / PAPER)
    try:
        return None if found is None else msgspec.convert(found, Paper)
    except msgspec.ValidationError:
        return None


async def open_worktree(house: House, run: str, thread: str, base: str) -> GitWorktree:
    """The worktree of a thread."""
    base = await commit_of(house, base)
    place = house.folder / TREES / f"{part(run)}+{part(thread)}"
    with told(str(place)):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with alone(house.folder / "open.lock"):
        paper = paper_of(place)
        if paper is not None and paper.base != base:
            why = f"The worktree of {thread!r} was opened from {paper.base[:12]}, not from {base[:12]}. Clean it first."
            raise WorkspaceFault("state", why)
        if paper is None or not (place / "tree").is_dir():
            paper = await _made(house, place, run, thread, base)
    worktree = paper.opened(house, place)
    if worktree.paused:
        await worktree.restore()
    return worktree


async def tip_of(house: House, run: str, thread: str) -> str:
    """Its newest commit, without a look at the worktree."""
    return await value_of(house, thread_ref(run, thread)) or await value_of(house, base_ref(run))


async def close_worktree(house: House, run: str, thread: str) -> None:
    """Take the worktree of a thread away."""
    place = house.folder / TREES / f"{part(run)}+{part(thread)}"
    if place.is_dir():
        async with alone(house.folder / "open.lock"):
            await asyncio.to_thread(take_down, place, house.repository.common)


async def _made(house: House, place: Path, run: str, thread: str, base: str) -> Paper:
    await asyncio.to_thread(_cleared, place, house)
    tree = place / "tree"
    begin = await value_of(house, thread_ref(run, thread)) or base
    reason = f"greenroom run {run}"
    await house.shared.ask(
        "worktree", "add", "--detach", "--no-checkout", "--lock", "--reason", reason, str(tree), begin
    )
    admin = await asyncio.to_thread(_admin, tree)
    skipped, submodules = await _filled(house, place, begin)
    await asyncio.to_thread(shutil.copy2, place / "index", Path(admin) / "index")
    paper = Paper(
        run=run,
        thread=thread,
        base=base,
        root=str(house.repository.root),
        git=str(house.repository.common),
        admin=admin,
        sparse=skipped,
        within=house.repository.within,
        submodules=submodules,
    )
    await asyncio.to_thread(write_data, place / PAPER, whole(paper))
    return paper


async def _filled(house: House, place: Path, commit: str) -> tuple[bool, tuple[str, ...]]:
    """Put the files there, but for those that the person's own checkout leaves out; whether there are such, and the
    submodules. Few have any, so they are looked for where the person has some, or where files say that there are."""
    git, theirs = house.on(place / "tree", place / "index"), list[Listed]()
    await git.ask("read-tree", commit)
    if not house.repository.own and (house.repository.git / "index").exists():
        theirs = await listing(house.refs)
    if skipped := absent(house.repository.root, theirs):
        known = {one.path for one in await listing(git)}
        await skip(git, [one for one in skipped if one in known])
    quick = git.also("-c", f"checkout.workers={WORKERS}", "-c", "checkout.thresholdForParallelism=200")
    await quick.ask("checkout-index", "--all", "--force", "--index", seconds=600)
    some = any(one.is_submodule for one in theirs) or (place / "tree" / ".gitmodules").exists()
    return bool(skipped), tuple(one.path for one in await listing(git) if one.is_submodule) if some else ()


def _cleared(place: Path, house: House) -> None:
    """Make room for it; and have git forget those beside it whose files somebody has deleted, since it never would:
    they are locked."""
    git = house.repository.common
    take_down(place, git)
    for admin, tree in _known(git):
        if tree.parent.parent == house.folder / TREES and not tree.parent.exists():
            shutil.rmtree(admin, ignore_errors=True)
    with told(str(place)):
        place.mkdir(mode=0o700)


def _admin(tree: Path) -> str:
    """The folder that git keeps about a worktree, as long as nobody has worked in that."""
    return (tree / ".git").read_text(encoding="utf-8", errors="surrogateescape").removeprefix(LINK).strip()


def take_down(place: Path, git: Path) -> None:
    """Remove a worktree with all that is in it, and what git keeps about it: only if that says that it is this one."""
    for admin, tree in _known(git):
        if tree == place / "tree":
            shutil.rmtree(admin, ignore_errors=True)
    if place.is_symlink() or not place.is_dir():
        return
    with told(str(place)), suppress(FileNotFoundError):
        (place / PAPER).unlink(missing_ok=True)
        remove_tree(place)


def _known(git: Path) -> list[tuple[Path, Path]]:
    """What git keeps about each worktree, with the folder that it says it is about."""
    found = []
    for one in (git / "worktrees").glob("*/gitdir"):
        with suppress(OSError):
            link = one.read_text(encoding="utf-8", errors="surrogateescape").strip()
            found.append((one.parent, Path(link).parent))
    return found
