"""What the checks of a project make beside what they check: it is nobody's work.

Where git is not told to ignore that, it would be in the next commit of whoever works there. Files that were there are
put back as they were. What came when the checks ran before anybody had worked is left where it is, since the next run
may want it, and passed over from then on: by its name, or all of a folder that has many such files and that nobody had
before. Somebody's own work in there can be claimed.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

from greenroom.adapters.git.closed_folders import folders_above, open_above, remove_tree
from greenroom.adapters.git.files import read_data, told, write_data
from greenroom.adapters.git.house import House
from greenroom.adapters.git.names import quoted
from greenroom.adapters.git.running import Git
from greenroom.adapters.git.seeding import joined, listing, split
from greenroom.adapters.git.states import NO_WAY, Ground
from greenroom.core.base.records import record
from greenroom.core.ports.workspace import LeftOut, Looked

FILE: Final = "litter"
NAMES: Final = "names"
CLAIMED: Final = "claimed"
FEW: Final = 3
"""Files in a folder that nobody had before, which are named one by one; with more, all that is in it counts."""

HIDING: Final = ".gitignore"
"""What says which files are work. One that came would hide somebody's, so it never stays."""


@record
class Litter:
    """What is passed over: files by their names, folders with all that is in them by names that end with a slash. What
    is `claimed` is somebody's work all the same."""

    names: frozenset[str] = frozenset()
    claimed: frozenset[str] = frozenset()

    def has(self, path: str) -> bool:
        """Whether a file is passed over, or another repository, which ends with a slash: if no work is in it."""
        if not self.covers(path):
            return False
        return not any(one.startswith(path) for one in self.claimed) if path.endswith("/") else path not in self.claimed

    def covers(self, path: str) -> bool:
        """Whether it is one of these, or in one of them."""
        return path in self.names or any(above in self.names for above in folders_above(path))


def litter(place: Path) -> Litter:
    """What is passed over in a worktree."""
    found = read_data(place / FILE) or {}
    return Litter(names=_strings(found.get(NAMES)), claimed=_strings(found.get(CLAIMED)))


def _strings(every: object) -> frozenset[str]:
    return frozenset(map(str, every)) if isinstance(every, list) else frozenset()


def pass_over(place: Path, names: Iterable[str]) -> tuple[str, ...]:
    """From now on these too. All names, as they can be written down anywhere."""
    known = litter(place)
    every = known.names | frozenset(names)
    if every != known.names:
        write_data(place / FILE, {NAMES: sorted(every), CLAIMED: sorted(known.claimed)})
    return tuple(sorted(map(quoted, every)))


def claim(place: Path, paths: Iterable[str]) -> None:
    """Let these be somebody's work, if they would be passed over."""
    known = litter(place)
    every = known.claimed | {one for one in paths if known.covers(one)}
    if every != known.claimed:
        write_data(place / FILE, {NAMES: sorted(known.names), CLAIMED: sorted(every)})


@record
class Strayed:
    """What is not as in a commit: files that it has, those of them that cannot be read any more (`spoilt`), and what it
    has not; other repositories end with a slash."""

    changed: tuple[str, ...] = ()
    spoilt: tuple[str, ...] = ()
    came: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of it."""
        return tuple(sorted((*self.changed, *self.spoilt, *self.came)))


async def strayed(house: House, git: Git, tip: str, looked: Looked, spared: Collection[str] = ()) -> Strayed:
    """What of the files of a worktree is not as in `tip`; the index is as that afterwards. Of what can be in no commit
    some is `spared`."""
    raw = split(await house.plain.ask("diff-tree", "-r", "-z", "--no-renames", tip, looked.tree))
    pairs = [(raw[at].split(" "), raw[at + 1]) for at in range(0, len(raw) - 1, 2)]
    if pairs:
        lines = [f"{said[0].lstrip(':')} {said[2]}\t{path}" for said, path in pairs]
        await git.ask("update-index", "-z", "--index-info", stdin=joined(lines))
    odd = [_named(one) for one in looked.left_out if one.path not in spared]
    known = {one.path for one in await listing(git)} if odd else set[str]()
    return Strayed(
        changed=tuple(path for said, path in pairs if said[4] != "A"),
        spoilt=tuple(one for one in odd if one in known),
        came=(*(path for said, path in pairs if said[4] == "A"), *(one for one in odd if one not in known)),
    )


def _named(one: LeftOut) -> str:
    return f"{one.path}/" if one.why == "repository" else one.path


async def put_back(git: Git, ground: Ground, found: Strayed, gone: Collection[str]) -> None:
    """Make files those of the index again, and take others away."""
    there = (*found.changed, *found.spoilt)
    await asyncio.to_thread(open_above, ground, (*gone, *there))
    await asyncio.to_thread(_taken_away, ground, (*gone, *found.spoilt))
    if there:
        await git.ask("checkout-index", "-z", "--force", "--index", "--stdin", stdin=joined(there))


def _taken_away(ground: Ground, paths: Iterable[str]) -> None:
    for path in paths:
        with told(str(ground.root / path)):
            _removed(ground, path)


def _removed(ground: Ground, path: str) -> None:
    """No link is followed on the way: what lies behind one is not ours."""
    try:
        with ground.folder_of(path.rstrip("/")) as (folder, name):
            if path.endswith("/"):
                remove_tree(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno not in NO_WAY:
            raise


async def renamed(house: House, base: str, tree: str, empty: str) -> list[tuple[str, str]]:
    """Files of `base` that a tree has under another name: both. In an `empty` one is nothing that could be known
    again."""
    raw = split(await house.plain.ask("diff-tree", "-r", "-z", "-M", "--diff-filter=R", "--no-abbrev", base, tree))
    every = ((raw[at].split(" ")[3], raw[at + 1], raw[at + 2]) for at in range(0, len(raw) - 2, 3))
    return [(old, new) for blob, old, new in every if blob != empty]


async def kept_names(house: House, tip: str, came: Sequence[str]) -> tuple[str, ...]:
    """What came, by name: one by one, or as the folder that has many of it."""
    if not came:
        return ()
    folders = split(await house.plain.ask("ls-tree", "-r", "-d", "-z", "--name-only", "--full-tree", tip))
    known = frozenset(f"{one}/" for one in folders)
    new = {path: next((above for above in folders_above(path) if above not in known), "") for path in came}
    often = Counter(new.values())
    return tuple(sorted({folder if folder and often[folder] > FEW else path for path, folder in new.items()}))
