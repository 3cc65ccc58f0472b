"""What the checks of a project make beside what they check: it is nobody's work.

Where git is not told to ignore that, it would be in the next commit of whoever works there. Files that were there are
put back as they were; what came is left where it is, since the next run may want it, and passed over from then on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from greenroom.adapters.git.files import read_data, write_data
from greenroom.adapters.git.house import House
from greenroom.adapters.git.running import Git
from greenroom.adapters.git.seeding import joined, split

FILE: Final = "litter"
NAMES: Final = "names"
FEW: Final = 3
"""Files in a folder that nobody had before, which are named one by one; with more, all that is in it counts."""


def litter(place: Path) -> tuple[str, ...]:
    """The files and folders that are passed over in a worktree."""
    names = (read_data(place / FILE) or {}).get(NAMES)
    return tuple(map(str, names)) if isinstance(names, list) else ()


def pass_over(place: Path, names: Iterable[str]) -> tuple[str, ...]:
    """From now on these too."""
    every = tuple(sorted({*litter(place), *names}))
    if every:
        write_data(place / FILE, {NAMES: every})
    return every


def is_litter(names: Collection[str], path: str) -> bool:
    """Whether a file is one of these, or in one of them."""
    return path in names or any(str(one) in names for one in PurePosixPath(path).parents)


async def put_back(house: House, git: Git, tip: str, tree: str) -> tuple[str, ...]:
    """Make the files of a worktree, which are `tree`, those of `tip` again, but for what came. What that is."""
    raw = split(await house.plain.ask("diff-tree", "-r", "-z", "--no-renames", tip, tree))
    pairs = [(raw[at].split(" "), raw[at + 1]) for at in range(0, len(raw) - 1, 2)]
    lines = [f"{said[0].lstrip(':')} {said[2]}\t{path}" for said, path in pairs]
    if not lines:
        return ()
    await git.ask("update-index", "-z", "--index-info", stdin=joined(lines))
    if there := [path for said, path in pairs if said[4] != "A"]:
        await git.ask("checkout-index", "-z", "--force", "--index", "--stdin", stdin=joined(there))
    came = [path for said, path in pairs if said[4] == "A"]
    folders = split(await house.plain.ask("ls-tree", "-r", "-d", "-z", "--name-only", "--full-tree", tip))
    return _named(came, frozenset(folders))


def _named(came: Collection[str], known: Collection[str]) -> tuple[str, ...]:
    new = {path: _highest(path, known) for path in came}
    often = Counter(filter(None, new.values()))
    return tuple(sorted({folder if often[folder] > FEW else path for path, folder in new.items()}))


def _highest(path: str, known: Collection[str]) -> str:
    """The highest folder above a file that nobody had before; empty if there is none."""
    above = [str(one) for one in PurePosixPath(path).parents][:-1]
    return next((one for one in reversed(above) if one not in known), "")
