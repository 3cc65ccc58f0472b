"""What governs a workspace, remembered before a command and put back after it: for walls that cannot keep it out."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.core.base.records import record

MOST: Final = 16 * 1024 * 1024
"""Bytes that are remembered of one place."""


@record
class Kept:
    """One file, link or folder as it was. A folder has what was in it, by name."""

    mode: int
    content: bytes = b""
    entries: Mapping[str, Kept] | None = None


def remembered(places: Iterable[Path]) -> dict[Path, Kept | None]:
    """What is there now; None where nothing is."""
    return {place: _kept(place) for place in places}


def put_back(before: Mapping[Path, Kept | None]) -> list[str]:
    """Make it what it was, while nobody runs who could interfere; returns what had been changed.

    Where the folder is gone, or is a link by now, there is nothing to put back into.
    """
    for place, kept in before.items():
        if kept is not None and not os.path.lexists(place.parent) and _is_real(place.parent.parent):
            place.parent.mkdir()
    changed = [(place, kept) for place, kept in before.items() if _is_real(place.parent) and _kept(place) != kept]
    for place, kept in changed:
        _remove(place)
        if kept is not None:
            _restore(place, kept)
    return [str(place) for place, _ in changed]


def _is_real(folder: Path) -> bool:
    return folder.is_dir() and folder.resolve() == folder


def _kept(place: Path) -> Kept | None:
    try:
        mode = os.lstat(place).st_mode
        if stat.S_ISLNK(mode):
            return Kept(mode=mode, content=os.fsencode(place.readlink()))
        if stat.S_ISDIR(mode):
            return Kept(mode=mode, entries={one.name: kept for one in place.iterdir() if (kept := _kept(one))})
        if not stat.S_ISREG(mode):
            return Kept(mode=mode)
        with place.open("rb") as file:
            return Kept(mode=mode, content=file.read(MOST))
    except OSError:
        return None


def _remove(place: Path) -> None:
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(place).st_mode):
            shutil.rmtree(place)
        else:
            place.unlink()


def _restore(place: Path, kept: Kept) -> None:
    if stat.S_ISLNK(kept.mode):
        place.symlink_to(os.fsdecode(kept.content))
    elif kept.entries is not None:
        place.mkdir()
        for name, one in kept.entries.items():
            _restore(place / name, one)
        place.chmod(stat.S_IMODE(kept.mode))
    elif stat.S_ISREG(kept.mode):
        place.write_bytes(kept.content)
        place.chmod(stat.S_IMODE(kept.mode))
