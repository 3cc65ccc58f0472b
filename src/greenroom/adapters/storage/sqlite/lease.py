"""Who is alive: one locked file per owned stream. The kernel lets go of it when its process dies, however it dies.

Who may append is not decided here but by the epoch in the database.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

TRIES: Final = 5
PAUSE: Final = 0.002
"""Somebody who only asks whether a stream is owned holds its lock for some microseconds: look again."""


class Leases:
    """The locks that one log instance holds. Changed only by the writer thread, inside its transactions."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def path(self, stream: str) -> Path:
        """The stream's lock file."""
        return self._folder / f"{quote(stream, safe='')}.lock"

    def mine(self, stream: str) -> bool:
        """Whether this instance holds the lock that counts, and nobody took it over by force."""
        handle = self._held.get(stream)
        return handle is not None and self._is_current(handle, self.path(stream))

    def live(self, stream: str) -> bool:
        """Whether somebody alive, here or elsewhere, holds the stream's lock."""
        try:
            handle = os.open(self.path(stream), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    def take(self, stream: str, *, force: bool) -> bool:
        """Lock the stream. With `force` a new file takes the place of the one that somebody else has locked."""
        if self.mine(stream):
            return True
        self.drop(stream)
        handle = self._lock(self.path(stream))
        if handle is None and force:
            handle = self._replace(self.path(stream))
        if handle is None:
            return False
        self._held[stream] = handle
        return True

    def drop(self, stream: str) -> None:
        """Unlock the stream, if this instance had it."""
        handle = self._held.pop(stream, None)
        if handle is not None:
            os.close(handle)

    def remove(self, stream: str) -> None:
        """Delete the file, while its lock is held, and unlock it."""
        self.path(stream).unlink(missing_ok=True)
        self.drop(stream)

    def close(self) -> None:
        """Unlock everything."""
        for stream in tuple(self._held):
            self.drop(stream)

    def _lock(self, path: Path) -> int | None:
        for _ in range(TRIES):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if self._try(handle) and self._is_current(handle, path):
                return handle
            os.close(handle)
            time.sleep(PAUSE)
        return None

    def _replace(self, path: Path) -> int:
        handle, name = tempfile.mkstemp(prefix=".", dir=self._folder)
        self._try(handle)
        Path(name).replace(path)
        return handle

    @staticmethod
    def _try(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @staticmethod
    def _is_current(handle: int, path: Path) -> bool:
        """Whether the locked file is still the one that others find under this name."""
        try:
            return os.path.samestat(os.fstat(handle), path.stat())
        except FileNotFoundError:
            return False
