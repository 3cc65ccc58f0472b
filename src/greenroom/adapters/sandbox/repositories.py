"""The repositories of git in a workspace, wherever in it: whoever asks git something in one runs what its settings say.

Folders are read again only when something came into them or went: the kernel dates that, and no command can change it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.core.base.records import record

BARE: Final = frozenset({"HEAD", "objects", "refs"})
"""A folder with these is a repository, whatever it is called."""

INNER: Final = ("modules", "worktrees")
LINK: Final = "gitdir:"
LONGEST: Final = 4096


@record
class Folder:
    """What a folder had in it when it was read: folders to look into, and whether it is, or has, a repository."""

    read: tuple[int, int]
    below: tuple[str, ...]
    bare: bool
    git: str


class Repositories:
    """Those below one folder."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._folders: dict[str, Folder] = {}

    def found(self) -> frozenset[Path]:
        """The folders in which git keeps settings and hooks. What they are inside is not said."""
        seen: dict[str, Folder] = {}
        settled = set[str]()
        waiting = [self._root]
        while waiting:
            place = waiting.pop()
            folder = self._folder(place)
            if folder is None:
                continue
            seen[place] = folder
            waiting += [f"{place}/{name}" for name in folder.below]
            if folder.bare:
                settled.add(place)
            if folder.git:
                settled.update(self._led_to(Path(place, folder.git)))
        self._folders = seen
        return frozenset(map(Path, settled.union(*map(self._inner, settled))))

    def _folder(self, place: str) -> Folder | None:
        try:
            known = os.lstat(place)
            when = (known.st_ino, known.st_ctime_ns)
            kept = self._folders.get(place)
            return kept if kept is not None and kept.read == when else _read(place, when)
        except OSError:
            return None

    def _led_to(self, git: Path) -> Iterator[str]:
        """The folder that a `.git` is, or names, if it is one in the workspace."""
        target = git
        with suppress(OSError, ValueError):
            if git.is_file():
                target = git.parent / _named(git)
        with suppress(OSError, RuntimeError):
            place = target.resolve()
            if place.is_dir() and place.is_relative_to(self._root):
                yield str(place)

    def _inner(self, place: str) -> Iterator[str]:
        """Those of submodules and of other worktrees, which lie in the repository itself."""
        for name in INNER:
            for folder, below, files in os.walk(f"{place}/{name}"):
                if "HEAD" in files or "commondir" in files:
                    below[:] = [one for one in below if one in INNER]
                    yield folder


def _named(git: Path) -> str:
    """The folder that a file `.git` names."""
    with git.open("rb") as file:
        text = os.fsdecode(file.read(LONGEST))
    return text.removeprefix(LINK).strip() if text.startswith(LINK) else ""


def _read(place: str, when: tuple[int, int]) -> Folder:
    below, names, git = [], set(), ""
    with os.scandir(place) as entries:
        for entry in entries:
            names.add(entry.name)
            if entry.name.casefold() == ".git":
                git = entry.name
            elif entry.is_dir(follow_symlinks=False):
                below.append(entry.name)
    bare = names >= BARE
    return Folder(read=when, below=() if bare else tuple(below), bare=bare, git=git)
