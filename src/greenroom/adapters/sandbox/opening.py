"""Folders that their owner has closed to themselves, opened for as long as we look: git goes through many of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

OWNER: Final = 0o700
LOOK: Final = 0o500


class Opening:
    """Of the folders below `root`. Nobody but their owner can open them, and root does not have to."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._modes: dict[Path, int] = {}

    def opened(self, place: Path, known: os.stat_result) -> bool:
        """Whether it was closed, and no longer is."""
        if known.st_mode & LOOK == LOOK or known.st_uid != os.geteuid() or known.st_uid == 0:
            return False
        mode = stat.S_IMODE(known.st_mode)
        with suppress(OSError):
            self._change(place, mode | OWNER)
            self._modes[place] = mode
            return True
        return False

    def close(self) -> None:
        """As they were. What is gone, or has moved, is not ours to close."""
        for place, mode in reversed(self._modes.items()):
            with suppress(OSError, ValueError):
                self._change(place, mode)
        self._modes.clear()

    def _change(self, place: Path, mode: int) -> None:
        """Never over a link: somebody may put one there at this moment."""
        if place == self._root:
            place.chmod(mode)
            return
        with folder_in(self._root, place.parent) as above:
            number = os.open(place.name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=above)
            try:
                Path(f"/proc/self/fd/{number}").chmod(mode)
            finally:
                os.close(number)


@contextmanager
def folder_in(root: Path, place: Path) -> Iterator[int]:
    """A folder below another one, open, and reached without a link on the way."""
    number = os.open(root, os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in place.relative_to(root).parts:
            inner = os.open(name, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=number)
            os.close(number)
            number = inner
        yield number
    finally:
        os.close(number)
