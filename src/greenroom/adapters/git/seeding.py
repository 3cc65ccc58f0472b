"""A copy of a person's index to begin with: it knows which files are as they were, so that few have to be read.

What it knows is not always so. It keeps what a filter or a change of line ends made of a file, not what lies on the
disk; it can have been told to look away from files; and in a merge it has three of some. All that is put right here.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.git.house import House
from greenroom.adapters.git.running import Git
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import WorkspaceFault

SUBMODULE: Final = "160000"
CONVERTING: Final = ("filter", "working-tree-encoding")
NAMELESS: Final = frozenset({"unspecified", "unset", "set"})
"""What an attribute says that names nothing."""


@record
class Listed:
    """One file in an index. `tag` is a letter: H as usual, S looked away from, M in a merge; small: taken as it is."""

    tag: str
    mode: str
    blob: str
    path: str

    @property
    def is_submodule(self) -> bool:
        """Whether it is another repository, of which only the commit is known here."""
        return self.mode == SUBMODULE


@record
class Seeds:
    """What is odd about an index: files of a merge, files of which it keeps something else than lies there, and other
    repositories."""

    conflicted: tuple[str, ...] = ()
    untrue: tuple[str, ...] = ()
    submodules: tuple[str, ...] = ()


async def seed(house: House, index: Path) -> Seeds:
    """Make `index` a copy of the person's, and say what in it is not so."""
    own = house.repository.git / "index"
    git = house.on(house.repository.root, index)
    copied(own, index)
    try:
        listed = await listing(git)
    except WorkspaceFault:
        listed = await _taken_over(house, git, index)
    await look_again(git, house.repository.root, listed)
    return Seeds(
        conflicted=tuple(dict.fromkeys(one.path for one in listed if one.tag == "M")),
        untrue=() if house.repository.own else tuple(await _untrue(house, listed)),
        submodules=tuple(one.path for one in listed if one.is_submodule),
    )


async def listing(git: Git) -> list[Listed]:
    """What is in an index."""
    found = []
    for line in split(await git.ask("ls-files", "-z", "-v", "--stage")):
        about, _, path = line.partition("\t")
        tag, mode, blob, _ = about.split(" ")
        found.append(Listed(tag=tag, mode=mode, blob=blob, path=path))
    return found


async def look_again(git: Git, root: Path, listed: Iterable[Listed]) -> None:
    """Have it look at files that somebody told it not to look at. What a sparse checkout leaves out stays so."""
    odd = [one for one in listed if one.tag not in ("H", "M")]
    assumed = [one.path for one in odd if one.tag.islower()]
    skipped = [one.path for one in odd if one.tag.upper() == "S"]
    gone = set(absent(root, odd))
    await _flagged(git, "--no-assume-unchanged", assumed)
    await _flagged(git, "--no-skip-worktree", [one for one in skipped if one not in gone])


def absent(root: Path, listed: Iterable[Listed]) -> list[str]:
    """Files that the index is told not to miss, and that are not there."""
    return [one.path for one in listed if one.tag.upper() == "S" and not os.path.lexists(root / one.path)]


def copied(own: Path, index: Path) -> None:
    """With its date: git looks again at files that are as young as the index."""
    with suppress(FileNotFoundError):
        shutil.copy2(own, index)


def _removed(index: Path) -> None:
    index.unlink(missing_ok=True)


async def skip(git: Git, paths: Sequence[str]) -> None:
    """Have it not miss these files."""
    await _flagged(git, "--skip-worktree", paths)


async def _taken_over(house: House, git: Git, index: Path) -> list[Listed]:
    """The same file by file, for an index that only its own repository can read: split, or sparse."""
    _removed(index)
    listed = await listing(house.refs)
    lines = [f"{one.mode} {one.blob} 0\t{one.path}" for one in listed if one.tag != "M"]
    await git.ask("update-index", "-z", "--index-info", stdin=joined(lines))
    await skip(git, [one.path for one in listed if one.tag.upper() == "S"])
    return listed


async def _untrue(house: House, listed: Sequence[Listed]) -> list[str]:
    """Files of which git may keep something else than what lies on the disk."""
    files = [one for one in listed if one.mode.startswith("100") and one.tag not in ("S", "s", "M")]
    if not house.habits.converts and not _has_attributes(house, files):
        return []
    sizes = (await house.plain.ask("cat-file", "--batch-check=%(objectsize)", stdin=_lines(files))).split(b"\n")
    other = [one.path for one, size in zip(files, sizes, strict=False) if not _is_size(house, one.path, size)]
    return list(dict.fromkeys([*other, *await _filtered(house, files)]))


def _has_attributes(house: House, files: Iterable[Listed]) -> bool:
    own = house.repository.common / "info" / "attributes"
    if house.habits.attributes or own.exists() or (house.repository.root / ".gitattributes").exists():
        return True
    return any(one.path.endswith(".gitattributes") for one in files)


def _is_size(house: House, path: str, size: bytes) -> bool:
    """Whether a file is as long as what git keeps of it: a change of line ends always changes that."""
    try:
        return (house.repository.root / path).lstat().st_size == int(size)
    except (OSError, ValueError):
        return True  # gone, or not there to compare: the look at the disk finds it


async def _filtered(house: House, files: Sequence[Listed]) -> list[str]:
    """Files that go through a filter, which can change everything but the length."""
    names = joined([one.path for one in files])
    told = house.refs.also("-c", f"core.attributesFile={house.habits.attributes or os.devnull}")
    said = split(await told.ask("check-attr", "-z", "--stdin", *CONVERTING, stdin=names))
    return [said[place] for place in range(0, len(said) - 2, 3) if said[place + 2] not in NAMELESS]


async def _flagged(git: Git, flag: str, paths: Sequence[str]) -> None:
    if paths:
        await git.ask("update-index", flag, "-z", "--stdin", stdin=joined(paths))


def split(said: bytes) -> list[str]:
    """What git lists with a zero after each."""
    return [os.fsdecode(one) for one in said.split(b"\0") if one]


def joined(names: Iterable[str]) -> bytes:
    """The other way round."""
    return b"".join(os.fsencode(one) + b"\0" for one in names)


def _lines(files: Iterable[Listed]) -> bytes:
    return "".join(f"{one.blob}\n" for one in files).encode()
