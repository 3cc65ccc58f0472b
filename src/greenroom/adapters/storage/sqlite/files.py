"""Files beside the database: large payloads named by their content (`blobs/ab/abcdef…`), and who is alive.

Each stream that is owned has a locked file. The kernel lets go of it when its process dies, however it dies. Who may
append is not decided here but by the epoch in the database.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from greenroom.core.base.errors import StoreFault


def flush(handle: int) -> None:
    """Return when the file is on the disk, not only in a cache of the system or the drive."""
    everything = getattr(fcntl, "F_FULLFSYNC", None)  # macOS only
    if everything is None:
        os.fsync(handle)
    else:
        fcntl.fcntl(handle, everything)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable: a new file's contents are not its name."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flush(handle)
    finally:
        os.close(handle)


DIGEST: Final = re.compile(r"[0-9a-f]{64}")
FRESH: Final = 1800.0
"""Seconds for which we need not look whether a blob that was put is still there: none is collected before an hour."""


class BlobFiles:
    """The folder of blobs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fresh: dict[str, tuple[int, float]] = {}

    def put(self, data: bytes) -> str:
        """Keep the bytes durably; returns their SHA-256."""
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        if not self._renew(path):
            self._write(path, data)
        flush_folder(path.parent)
        self._fresh[digest] = (len(data), time.monotonic())
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes, checked."""
        if not DIGEST.fullmatch(digest):
            raise StoreFault(f"{digest!r} is not the digest of a blob: 64 hexadecimal digits are wanted.")
        path = self._path(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise StoreFault(f"The blob {path} is missing. Restore it from a copy of the folder.") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise StoreFault(f"The blob {path} is damaged. Restore it from a copy of the folder.")
        return data

    def size(self, digest: str) -> int | None:
        """How large the blob is; None when it is not there."""
        size, put_at = self._fresh.get(digest, (0, -FRESH))
        if time.monotonic() - put_at < FRESH:
            return size
        if not DIGEST.fullmatch(digest):
            return None
        try:
            return self._path(digest).stat().st_size
        except FileNotFoundError:
            return None

    def named(self, digest: str) -> None:
        """An event names the blob now: nobody needs to remember it here."""
        self._fresh.pop(digest, None)

    def old(self, before: float) -> Iterator[Sequence[str]]:
        """The digests that nobody put since then, folder by folder. (What is half written is swept up on the way.)"""
        for folder in sorted(self._folder.glob("??")):
            aged = [path for path in folder.iterdir() if modified(path) < before]
            for path in aged:
                if path.suffix:
                    path.unlink(missing_ok=True)
            yield [path.name for path in aged if not path.suffix]

    def remove(self, digest: str, before: float) -> int:
        """Delete a blob that nothing names, unless somebody put it again meanwhile; returns the bytes freed."""
        path = self._path(digest)
        with self._locked(fcntl.LOCK_EX):
            try:
                found = path.stat()
            except FileNotFoundError:
                return 0
            if found.st_mtime >= before:
                return 0
            path.unlink()
            self._fresh.pop(digest, None)
            return found.st_size

    def _renew(self, path: Path) -> bool:
        """Make a blob that is there young again, so that nobody collects what is about to be named."""
        if not path.exists():
            return False
        with self._locked(fcntl.LOCK_SH):
            try:
                os.utime(path)
            except FileNotFoundError:
                return False
            return True

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        """Between looking at a blob's age and deleting it nobody may renew it, in whichever process."""
        handle = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, how)
            yield
        finally:
            os.close(handle)

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest

    def _write(self, path: Path, data: bytes) -> None:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            flush_folder(self._folder)
        handle, name = tempfile.mkstemp(suffix=".new", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                flush(file.fileno())
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise


def modified(path: Path) -> float:
    """When the file was written or renewed; what has gone meanwhile, or got its name, is young."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return math.inf


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
