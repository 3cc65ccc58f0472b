"""Folders in which others have worked: some of them let nobody write there any more, and we have to all the same.

No link is followed: what lies behind one is not ours.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from greenroom.adapters.git.states import Ground


def folders_above(path: str) -> Iterator[str]:
    """The folders in which a path lies, the highest first; each ends with a slash. There may be very many paths."""
    at = path.find("/")
    while at >= 0:
        yield path[: at + 1]
        at = path.find("/", at + 1)


def open_above(ground: Ground, paths: Iterable[str]) -> None:
    """Open all folders above these. Where that cannot be done, whoever writes there hears why."""
    for above in dict.fromkeys(one for path in paths for one in folders_above(path.rstrip("/"))):
        with suppress(OSError), ground.folder_of(f"{above}.") as (folder, _):
            _open(folder)


def remove_tree(name: str | Path, *, dir_fd: int | None = None) -> None:
    """Remove a folder with all that is in it."""
    try:
        shutil.rmtree(name, dir_fd=dir_fd)
    except PermissionError:
        for *_, folder in os.fwalk(name, dir_fd=dir_fd):
            _open(folder)
        shutil.rmtree(name, dir_fd=dir_fd)


def _open(folder: int) -> None:
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.fchmod(folder, mode | stat.S_IRWXU)
