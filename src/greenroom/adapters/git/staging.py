"""An index brought in line with a tree of files: what changed, came or went is in it afterwards, byte for byte."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.adapters.git.running import Git
from greenroom.adapters.git.seeding import joined, split
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.workspace import LeftOut, Looked, WorkspaceFault

LARGEST: Final = 100 * 1024 * 1024
"""Bytes of a file that git does not know yet."""

MOST: Final = 1_000_000
"""Files that git does not know yet; more is no work but a disk."""

TRIES: Final = 3

Named: TypeAlias = Callable[[str], bool]
"""Whether a path is of some sort, by its name."""


def nothing(_: str) -> bool:
    """None is."""
    return False


@record
class Found:
    """What is to be done to an index."""

    gone: tuple[str, ...]
    there: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


async def stage(
    git: Git,
    root: Path,
    *,
    untrue: Sequence[str] = (),
    largest: int = LARGEST,
    whole: bool = False,
    secret: Named = nothing,
    ignored: Named = nothing,
) -> Looked:
    """Look at the tree, and make one of git's of it. Files may come and go meanwhile: then it is looked at again.

    Of `untrue` files the index keeps something else than lies there; they are read whatever it says. A `whole` tree has
    every file's content in the repository, which in a partial clone is not so. What git does not know and is `secret`
    by its name is left out; what is `ignored` is as good as not there.
    """
    for last in range(1, TRIES + 1):
        try:
            every = [one for one in await unknown(git) if not ignored(one)]
            staged = await _staged(git, root, untrue, every, largest=largest, secret=secret)
            tree = await git.text("write-tree", *(() if whole else ("--missing-ok",)))
            return Looked(tree=tree, left_out=staged.left_out)
        except WorkspaceFault as fault:
            if last == TRIES or fault.reason not in ("git", "repository"):
                raise
    raise AssertionError("the last try returns or raises")


async def _staged(
    git: Git, root: Path, untrue: Sequence[str], every: Sequence[str], *, largest: int, secret: Named
) -> Found:
    changed = await _changed(git)
    hidden = [one for one in every if secret(one)]
    shown = [one for one in every if one not in hidden] if hidden else every
    again = dict.fromkeys(untrue)
    changed = [one for one in changed if one[1] not in again] + [("T", path) for path in again]
    found = await asyncio.to_thread(_sorted_out, root, changed, shown, largest)
    found = evolve(found, left_out=(*found.left_out, *(LeftOut(path=one, why="secret") for one in hidden)))
    if found.gone:
        await git.ask("update-index", "-z", "--force-remove", "--stdin", stdin=joined(found.gone))
    if found.there:
        await git.ask("update-index", "-z", "--add", "--replace", "--stdin", stdin=joined(found.there))
    return found


async def _changed(git: Git) -> list[tuple[str, str]]:
    """Files that git knows and that may have changed: a letter for what happened, and the name."""
    said = split(await git.ask("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=all"))
    return [(said[place].split(" ")[4], said[place + 1]) for place in range(0, len(said) - 1, 2)]


async def unknown(git: Git) -> list[str]:
    """Files that git does not know and is not told to ignore. Other repositories end with a slash."""
    found = split(await git.ask("ls-files", "-z", "--others", "--exclude-standard"))
    if len(found) > MOST:
        why = f"There are {len(found):,} files here that git does not know, too many to copy. Name some in .gitignore."
        raise WorkspaceFault("too_large", why)
    return found


def _sorted_out(root: Path, changed: Sequence[tuple[str, str]], new: Sequence[str], largest: int) -> Found:
    """What to do about each. What git knows already is never too large, but for what it keeps something shorter of."""
    gone, there, left_out = list[str](), list[str](), list[LeftOut]()
    for letter, path in (*dict.fromkeys(changed), *(("A", one) for one in new)):
        said = "gone" if letter == "D" else _looked_at(root / path, path, None if letter in "MU" else largest)
        if isinstance(said, LeftOut):
            left_out.append(said)
        elif said == "there":
            there.append(path)
        if said == "gone" or (letter in "UT" and said == "there"):
            gone.append(path)
    return Found(gone=tuple(dict.fromkeys(gone)), there=tuple(dict.fromkeys(there)), left_out=tuple(left_out))


def _looked_at(place: Path, path: str, largest: int | None) -> LeftOut | str:
    """Whether a file is there and can be kept."""
    if path.endswith("/"):
        return LeftOut(path=path.rstrip("/"), why="repository")
    try:
        status = os.lstat(place)
    except OSError:
        return "gone"
    if stat.S_ISDIR(status.st_mode):
        return "gone"
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISLNK(status.st_mode):
        return LeftOut(path=path, why="other")
    if largest is not None and status.st_size > largest:
        return LeftOut(path=path, why="too_large", size=status.st_size)
    if stat.S_ISREG(status.st_mode) and not os.access(place, os.R_OK):
        return LeftOut(path=path, why="unreadable", size=status.st_size)
    return "there"
