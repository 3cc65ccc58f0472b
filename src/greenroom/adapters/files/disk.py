"""What is done to a workspace's files, in the thread that calls it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from greenroom.adapters.files.ground import Ground, Place, rename_to_new, told
from greenroom.core.ports.files import Entry, FileFault, Kind, digest_of

PIECE: Final = 1 << 20
PATIENCE: Final = 10.0
"""Seconds to wait for another process that writes in the same folder."""

READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
KEPT_MODE: Final = 0o1777
"""The bits of a mode that a new content keeps. Like every write, it takes the right to act as the owner away."""

DRAFT: Final = ".greenroom-"
"""How a file begins that is being written; what a crash leaves of one is taken over by the next attempt."""


@dataclass(frozen=True, slots=True)
class Old:
    """What stands where something is to be written."""

    status: os.stat_result
    digest: str


class Disk:
    """The files of one ground."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def read(self, path: str, limit: int) -> bytes:
        """A whole file."""
        with self._ground.place(path) as place, told(path), opened(place, path) as (file, status):
            if status.st_size > limit:
                raise _too_large(path, status.st_size, limit)
            content = b"".join(_pieces(file, limit + 1))
        if len(content) > limit:
            raise _too_large(path, len(content), limit)
        return content

    def stat(self, path: str) -> Entry | None:
        """What is there."""
        try:
            with self._ground.place(path) as place, told(path):
                status = os.stat(place.name or ".", dir_fd=place.folder, follow_symlinks=False)
                digest = _digest(place, path) if stat.S_ISREG(status.st_mode) else ""
        except FileFault as fault:
            if fault.reason == "missing":
                return None
            raise
        return entry(self._ground.named(path), status, digest)

    def entries(self, path: str) -> list[Entry]:
        """What is in a folder."""
        named = self._ground.named(path)
        with self._ground.folder(path) as folder, told(path), os.scandir(folder) as found:
            both = [(one.name, one.stat(follow_symlinks=False)) for one in found]
        return [entry(f"{named}/{shown(name)}".lstrip("/"), status) for name, status in sorted(both)]

    def write(self, path: str, content: bytes, expected: str | None) -> None:
        """Put a whole file in its place."""
        if expected is None:
            self._make_way(path)
        with self._ground.place(path) as place:
            self._ground.guard(place, path)
            with told(path), alone(place.folder, path):
                old = _expected(place, path, expected)
                self._replace(place, path, content, old)

    def delete(self, path: str, expected: str) -> None:
        """Take a file away."""
        with self._ground.place(path) as place:
            self._ground.guard(place, path)
            with told(path), alone(place.folder, path):
                _expected(place, path, expected)
                os.unlink(place.name, dir_fd=place.folder)
                os.fsync(place.folder)

    def _make_way(self, path: str) -> None:
        """Make the folders above a path that are not there."""
        parts = self._ground.named(path).split("/")[:-1]
        for number in range(1, len(parts) + 1):
            above = "/".join(parts[:number])
            with self._ground.place(above) as place:
                if not place.name or _status(place) is not None:
                    continue
                self._ground.guard(place, path)
                with told(above), suppress(FileExistsError):
                    os.mkdir(place.name, dir_fd=place.folder)
                    os.fsync(place.folder)

    def _replace(self, place: Place, path: str, content: bytes, old: Old | None) -> None:
        key = digest_of(f"{place.name}\n".encode(errors="surrogateescape") + content)
        draft = f"{DRAFT}{key[:20]}.tmp"
        try:
            _draft(place.folder, draft, content, old.status if old else None)
            if old is None:
                rename_to_new(place.folder, draft, place.name)
            else:
                _still(place, path, old.status)
                os.rename(draft, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=place.folder)
        os.fsync(place.folder)


def entry(path: str, status: os.stat_result, digest: str = "") -> Entry:
    """An entry of what the system says."""
    return Entry(path=path, kind=kind_of(status), size=status.st_size, mode=stat.S_IMODE(status.st_mode), digest=digest)


def kind_of(status: os.stat_result) -> Kind:
    """What sort of thing it is."""
    if stat.S_ISREG(status.st_mode):
        return "file"
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "link" if stat.S_ISLNK(status.st_mode) else "other"


def shown(name: str) -> str:
    """A name that can be written down; one that is no UTF-8 can be listed, but not opened."""
    return os.fsencode(name).decode("utf-8", "replace")


@contextmanager
def opened(place: Place, path: str) -> Iterator[tuple[int, os.stat_result]]:
    """A file for reading. Anything else is refused before it is opened: opening a pipe or a device does things."""
    _only_files(os.stat(place.name or ".", dir_fd=place.folder, follow_symlinks=False), path)
    file = os.open(place.name, READ, dir_fd=place.folder)
    try:
        status = os.fstat(file)
        _only_files(status, path)
        yield file, status
    finally:
        os.close(file)


@contextmanager
def alone(folder: int, path: str) -> Iterator[None]:
    """No other writer of ours, of this process or another, is at work in this folder meanwhile."""
    end = time.monotonic() + PATIENCE
    while not _locked(folder):
        if time.monotonic() > end:
            raise FileFault("disk", f"Another program has kept the folder of {path!r} locked for {PATIENCE:.0f} s.")
        time.sleep(0.005)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_UN)


def _locked(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # File systems without locks are written without: the content is compared either way.
        return error.errno not in (errno.EWOULDBLOCK, errno.EINTR)
    return True


def _only_files(status: os.stat_result, path: str) -> None:
    kind = kind_of(status)
    if kind == "file":
        return
    what = {"folder": "a folder", "link": "a link that changes all the time"}.get(kind, "a pipe, a socket or a device")
    raise FileFault("kind", f"{path!r} is {what}, not a file.")


def _pieces(file: int, limit: int) -> Iterator[bytes]:
    while limit > 0 and (piece := os.read(file, min(limit, PIECE))):
        limit -= len(piece)
        yield piece


def _status(place: Place) -> os.stat_result | None:
    try:
        return os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _digest(place: Place, path: str) -> str:
    found = hashlib.sha256()
    with opened(place, path) as (file, _):
        while piece := os.read(file, PIECE):
            found.update(piece)
    return found.hexdigest()


def _expected(place: Place, path: str, expected: str | None) -> Old | None:
    """What is there, if it is what the caller thinks."""
    status = _status(place) if place.name else os.fstat(place.folder)
    if status is None:
        if expected is not None:
            raise FileFault("missing", f"{path!r} has vanished.")
        return None
    _only_files(status, path)
    if expected is None:
        raise FileFault("exists", f"{path!r} is there already.")
    if not status.st_mode & 0o222 or not os.access(place.name, os.W_OK, dir_fd=place.folder):
        raise FileFault("read_only", f"{path!r} is read-only (mode {stat.S_IMODE(status.st_mode):o}).")
    digest = _digest(place, path)
    if digest != expected:
        raise FileFault("changed", f"{path!r} is not what it was: somebody has changed it meanwhile.")
    return Old(status=status, digest=digest)


def _still(place: Place, path: str, old: os.stat_result) -> None:
    """Reading and writing a large file takes a while; what is looked at last is looked at just before."""
    now = _status(place)
    if now is None or _signature(now) != _signature(old):
        raise FileFault("changed", f"{path!r} is not what it was: somebody has changed it meanwhile.")


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _draft(folder: int, name: str, content: bytes, old: os.stat_result | None) -> None:
    """The new content, whole and durable, under another name."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    file = os.open(name, NEW, 0o666 if old is None else 0o600, dir_fd=folder)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file, rest[:PIECE]) :]
        if old is not None:
            with suppress(PermissionError):
                os.fchown(file, old.st_uid, old.st_gid)
            os.fchmod(file, stat.S_IMODE(old.st_mode) & KEPT_MODE)
        os.fsync(file)
    finally:
        os.close(file)


def _too_large(path: str, size: int, limit: int) -> FileFault:
    return FileFault("too_large", f"{path!r} has {size:,} bytes; at most {limit:,} are read.")
