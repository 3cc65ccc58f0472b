"""Files beside the database: large payloads named by their content (`blobs/ab/abcdef…`), and lease files.

Each owned stream has a locked file. The kernel releases the lock when the process dies, for any reason. The lock only
shows that the owner is alive; the epoch in the database decides who may append.
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
    """Wait until the file is on the disk, not only in a cache of the system or drive."""
    everything = getattr(fcntl, "F_FULLFSYNC", None)  # macOS only
    if everything is None:
        os.fsync(handle)
    else:
        fcntl.fcntl(handle, everything)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable. Flushing a new file does not flush its name."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flush(handle)
    finally:
        os.close(handle)


DIGEST: Final = re.compile(r"[0-9a-f]{64}")
FRESH_S: Final = 1800.0
"""How long a stored blob is assumed to exist, in seconds. Blobs are collected after an hour at the earliest."""


class BlobFiles:
    """The folder of blobs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recent: dict[str, tuple[int, float]] = {}

    def put(self, data: bytes) -> str:
        """Store the bytes durably and return their SHA-256."""
        digest = hashlib.sha256(data).hexdigest()
        path = self._make_path(digest)
        if not self._try_renew(path):
            self._write(path, data)
        flush_folder(path.parent)
        self._recent[digest] = (len(data), time.monotonic())
        return digest

    def get(self, digest: str) -> bytes:
        """Return the bytes of a blob. Raise `StoreFault` if it is missing or damaged."""
        if not DIGEST.fullmatch(digest):
            raise StoreFault("storage.malformed_digest", digest=digest)
        path = self._make_path(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise StoreFault("storage.blob_missing", path=path) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise StoreFault("storage.blob_file_damaged", path=path)
        return data

    def find_size(self, digest: str) -> int | None:
        size, put_at = self._recent.get(digest, (0, -FRESH_S))
        if time.monotonic() - put_at < FRESH_S:
            return size
        if not DIGEST.fullmatch(digest):
            return None
        try:
            return self._make_path(digest).stat().st_size
        except FileNotFoundError:
            return None

    def mark_referenced(self, digest: str) -> None:
        """Stop tracking a blob that an event references now."""
        self._recent.pop(digest, None)

    def list_old(self, before: float) -> Iterator[Sequence[str]]:
        """Yield the digests that were not stored since `before`, folder by folder. Remove old partial files too."""
        for folder in sorted(self._folder.glob("??")):
            old_paths = [path for path in folder.iterdir() if read_modified_time(path) < before]
            for path in old_paths:
                if path.suffix:
                    path.unlink(missing_ok=True)
            yield [path.name for path in old_paths if not path.suffix]

    def remove(self, digest: str, before: float) -> int:
        """Delete an unreferenced blob, unless it was stored again meanwhile. Return the bytes freed."""
        path = self._make_path(digest)
        with self._lock(fcntl.LOCK_EX):
            try:
                status = path.stat()
            except FileNotFoundError:
                return 0
            if status.st_mtime >= before:
                return 0
            path.unlink()
            self._recent.pop(digest, None)
            return status.st_size

    def _try_renew(self, path: Path) -> bool:
        """Update the time of an existing blob, so that it is not collected before an event references it."""
        if not path.exists():
            return False
        with self._lock(fcntl.LOCK_SH):
            try:
                os.utime(path)
            except FileNotFoundError:
                return False
            return True

    @contextmanager
    def _lock(self, operation: int) -> Iterator[None]:
        """Hold the lock that separates renewing a blob from collecting it, across processes."""
        handle = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, operation)
            yield
        finally:
            os.close(handle)

    def _make_path(self, digest: str) -> Path:
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


def read_modified_time(path: Path) -> float:
    """Return when the file was written or renewed; infinity if it is gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return math.inf


MAX_ATTEMPTS: Final = 5
RETRY_PAUSE_S: Final = 0.002
"""Pause in seconds between two attempts. A process that checks for an owner holds the lock for microseconds."""


class LeaseFiles:
    """The lease files that one log instance has locked. Only the writer thread changes them, inside transactions."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def make_path(self, stream: str) -> Path:
        """Return the stream's lock file."""
        return self._folder / f"{quote(stream, safe='')}.lock"

    def is_mine(self, stream: str) -> bool:
        """Return whether this instance holds the current lock, and no other process took it over by force."""
        handle = self._held.get(stream)
        return handle is not None and self._is_current(handle, self.make_path(stream))

    def is_live(self, stream: str) -> bool:
        """Return whether any live process holds the stream's lock."""
        try:
            handle = os.open(self.make_path(stream), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    def try_take(self, stream: str, *, force: bool) -> bool:
        """Lock the stream. With `force`, replace a lock file that another process has locked."""
        if self.is_mine(stream):
            return True
        self.drop(stream)
        handle = self._lock(self.make_path(stream))
        if handle is None and force:
            handle = self._replace(self.make_path(stream))
        if handle is None:
            return False
        self._held[stream] = handle
        return True

    def drop(self, stream: str) -> None:
        """Unlock the stream if this instance holds it."""
        handle = self._held.pop(stream, None)
        if handle is not None:
            os.close(handle)

    def remove(self, stream: str) -> None:
        """Delete the lock file while it is locked, then unlock it."""
        self.make_path(stream).unlink(missing_ok=True)
        self.drop(stream)

    def close(self) -> None:
        """Unlock everything."""
        for stream in tuple(self._held):
            self.drop(stream)

    def _lock(self, path: Path) -> int | None:
        for _ in range(MAX_ATTEMPTS):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if self._try_lock(handle) and self._is_current(handle, path):
                return handle
            os.close(handle)
            time.sleep(RETRY_PAUSE_S)
        return None

    def _replace(self, path: Path) -> int:
        handle, name = tempfile.mkstemp(prefix=".", dir=self._folder)
        self._try_lock(handle)
        Path(name).replace(path)
        return handle

    @staticmethod
    def _try_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @staticmethod
    def _is_current(handle: int, path: Path) -> bool:
        """Return whether the locked file is still the file at this path."""
        try:
            return os.path.samestat(os.fstat(handle), path.stat())
        except FileNotFoundError:
            return False
