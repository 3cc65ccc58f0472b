"""What looks like git in a folder, wherever in it: whoever asks git something there runs what its settings say.

Nothing is taken for harmless because of where it lies: every folder is read, in repositories too. Folders are read
again only when something came into them or went: the kernel dates that, and no command can change it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.opening import LOOK, Opening
from greenroom.core.base.records import record

OF_WORKTREE: Final = frozenset({"head", "commondir"})
BARE: Final = frozenset({"head", "objects", "refs"})
"""A folder with all of one of these is a repository to git, whatever it is called."""

NAMES: Final = frozenset({".git", "git~1"})
UNSEEN: Final = dict.fromkeys((*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))
"""Disks of other systems fold letters, leave these out of a name, and know `.git` by another one."""

SETTLED: Final = 100_000_000
"""Nanoseconds after which the date of a folder tells of a change for sure: clocks of the kernel are coarse."""


@record
class Found:
    """`folders` are those in which git keeps settings and hooks, `signs` what is called `.git` and is no folder.

    `sockets` are doors to somebody: they have nothing to do with git, but it is the same walk.
    """

    folders: frozenset[Path] = frozenset()
    signs: frozenset[Path] = frozenset()
    sockets: frozenset[Path] = frozenset()


@record
class Folder:
    """What a folder had in it when it was read, and whether it is a repository (`bare`), or that of a worktree.

    One that is closed, or was just changed, has a `date` that it will not have again; most have nothing to tell.
    """

    number: int
    date: int
    tells: bool = False
    below: tuple[str, ...] = ()
    gits: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    bare: bool = False
    worktree: bool = False


class Repositories:
    """Those below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folders: dict[str, Folder] = {}
        self.opening = Opening(root)

    def found(self) -> Found:
        """All that there is now. What was closed is open until `opening` closes it again."""
        seen = self._folders = self._walked()
        told = [(place, one) for place, one in seen.items() if one.tells]
        return Found(
            folders=frozenset(map(Path, _repositories(told))),
            signs=frozenset(Path(place, name) for place, one in told for name in one.signs),
            sockets=frozenset(path for place, one in told for path in _sockets(place, one.odd)),
        )

    def _walked(self) -> dict[str, Folder]:
        """This is done for every command, and there may be many thousand folders: most are only looked at."""
        seen: dict[str, Folder] = {}
        waiting, kept = [str(self.root)], self._folders
        while waiting:
            place = waiting.pop()
            try:
                known = os.lstat(place)
                folder = kept.get(place)
                if folder is None or folder.date != known.st_ctime_ns or folder.number != known.st_ino:
                    folder = self._read(place, known)
            except OSError:  # it went while we looked, or nobody of us can look into it, nor a command
                continue
            seen[place] = folder
            if folder.below:
                waiting += [f"{place}/{name}" for name in folder.below]
        return seen

    def _read(self, place: str, known: os.stat_result) -> Folder:
        if known.st_mode & LOOK != LOOK and self.opening.opened(Path(place), known):
            known = os.lstat(place)
        settled = time.time_ns() - known.st_ctime_ns > SETTLED
        return _read(place, known.st_ino, known.st_ctime_ns if settled else -1)


def is_git(name: str) -> bool:
    """Whether some disk takes this name for `.git`."""
    seen = name if name.isascii() else name.translate(UNSEEN)
    return seen.rstrip(". ").casefold() in NAMES


def _repositories(told: list[tuple[str, Folder]]) -> Iterator[str]:
    """With what is common to worktrees: git reads its settings too, even if it looks like nothing by itself."""
    for place, folder in told:
        yield from (f"{place}/{name}" for name in folder.gits)
        if folder.bare:
            yield place
        if folder.worktree and Path(place).parent.name == "worktrees":
            yield str(Path(place).parent.parent)


def _sockets(place: str, odd: tuple[str, ...]) -> Iterator[Path]:
    return (Path(place, name) for name in odd if Path(place, name).is_socket())


def _read(place: str, number: int, date: int) -> Folder:
    below, gits, signs, odd, names = list[str](), list[str](), list[str](), list[str](), set[str]()
    with os.scandir(place) as entries:
        for entry in entries:
            name, folder = entry.name, entry.is_dir(follow_symlinks=False)
            names.add(name.casefold())
            if folder:
                below.append(name)
            if is_git(name):
                (gits if folder else signs).append(name)
            elif not folder and not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                odd.append(name)
    worktree = names >= OF_WORKTREE
    bare = worktree or names >= BARE
    return Folder(
        number=number,
        date=date,
        tells=bool(gits or signs or odd) or bare,
        below=tuple(below),
        gits=tuple(gits),
        signs=tuple(signs),
        odd=tuple(odd),
        bare=bare,
        worktree=worktree,
    )
