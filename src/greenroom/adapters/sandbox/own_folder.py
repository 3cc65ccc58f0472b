"""A folder that is ours for as long as we live: a lock in it says so, and what a killed house left is swept."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

LOCK: Final = "in-use"


class OwnFolder:
    """Made below `folder`, which is nobody else's. Others may go through it, and see nothing."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        with _alone_in(folder):  # or another house takes a folder for a dead one's before it is locked
            _sweep(folder)
            self.place = folder / secrets.token_hex(8)
            self.place.mkdir(mode=0o711)
            self._lock = os.open(self.place / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove it, once."""
        if self._lock >= 0:
            shutil.rmtree(self.place, onerror=_open_and_again)
            os.close(self._lock)
            self._lock = -1


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _sweep(folder: Path) -> None:
    for place in folder.iterdir():
        with suppress(OSError):
            lock = os.open(place / LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place, onerror=_open_and_again)
            finally:
                os.close(lock)


def _open_and_again(_: object, path: str, __: object) -> None:
    """Somebody took the right away to remove what is in a folder of theirs."""
    with suppress(OSError):
        place = Path(path)
        place.parent.chmod(0o700)
        if place.is_dir() and not place.is_symlink():
            place.chmod(0o700)
            shutil.rmtree(place)
        else:
            place.unlink()
