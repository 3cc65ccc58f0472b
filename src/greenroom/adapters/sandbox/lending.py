"""A workspace of root's, lent to somebody else while commands run: for walls that can show nothing as another's."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.core.base.errors import WorldFault

PASSABLE: Final = 0o001


class Lending:
    """All that is root's in it belongs to `uid` until the last command has ended, and then is root's again."""

    def __init__(self, root: Path, uid: int) -> None:
        self._root = root
        self._uid = uid
        self._running = 0

    def check(self) -> None:
        """`WorldFault` where nobody but root gets to the workspace."""
        closed = next((one for one in self._root.parents if not one.stat().st_mode & PASSABLE), None)
        if closed is not None:
            raise WorldFault(
                f"Commands are not run as root, and nobody else gets through {str(closed)!r} to the workspace. "
                "Install bubblewrap, or work in a folder that others can reach."
            )

    def begin(self) -> None:
        """A command is about to run."""
        self._give(0, self._uid)
        self._running += 1

    def end(self) -> None:
        """One has ended."""
        self._running -= 1
        if self._running == 0:
            self._give(self._uid, 0)

    def _give(self, giver: int, taker: int) -> None:
        with suppress(FileNotFoundError):
            _give_one(str(self._root), None, giver, taker)
        for _, folders, files, number in os.fwalk(self._root):
            for name in (*folders, *files):
                with suppress(FileNotFoundError):
                    _give_one(name, number, giver, taker)


def _give_one(name: str, folder: int | None, giver: int, taker: int) -> None:
    if os.stat(name, dir_fd=folder, follow_symlinks=False).st_uid == giver:
        os.chown(name, taker, taker, dir_fd=folder, follow_symlinks=False)
