"""What SQLite and the disk say, in our words: what happened, to which file, what to do now."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from greenroom.core.base.errors import CommitUnknown, StoreFault, StoreFull, WorldFault

READ_ONLY: Final = (
    "{path} cannot be written: the file or its folder is read-only. It can be looked at; to change something, make it "
    "writable, or choose another folder."
)
UNREADABLE: Final = "{path} cannot be read: you are not permitted to. Change its permissions, or choose another folder."

SENTENCES: Final = {
    sqlite3.SQLITE_BUSY: "{path} stayed locked by another process, so nothing can be recorded. Close it, or try again.",
    sqlite3.SQLITE_LOCKED: "{path} stayed locked, so nothing can be recorded. Try again.",
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: "{path} cannot be opened ({error}). Check that it and its folder can be read and written.",
    sqlite3.SQLITE_NOTADB: "{path} is not a Greenroom database ({error}). Move it away, or choose another folder.",
    sqlite3.SQLITE_CORRUPT: (
        "{path} is damaged ({error}). Copy the folder before anything else; `greenroom doctor` says what can be read."
    ),
    sqlite3.SQLITE_IOERR: "The disk failed under {path} ({error}). Check the disk, then try again.",
    sqlite3.SQLITE_INTERRUPT: "{path} was closed while it was being read. Open it again.",
}

FULL: Final = "The disk of {path} is full, so nothing can be recorded. Make room, then go on."
ROOM: Final = 64 * 1024
"""With less than this left a failed write is for want of room, however the system calls it."""

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
FORBIDDEN: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 when the error is the module's own."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def concerns_all(error: Exception) -> bool:
    """Whether the database failed, and not only what one caller wanted from it."""
    return isinstance(error, sqlite3.DatabaseError) and type(error) in {sqlite3.DatabaseError, sqlite3.OperationalError}


def missing(stream: str) -> StoreFault:
    """What to say about a name that no stream has."""
    return StoreFault(f"There is no stream {stream!r}. `greenroom tasks` lists what there is.")


def translate(error: sqlite3.Error, path: Path) -> WorldFault:
    """An error before the commit: nothing of the transaction is in the store."""
    primary = code(error)
    if primary == sqlite3.SQLITE_FULL or (primary == sqlite3.SQLITE_IOERR and no_room(path)):
        return StoreFull(FULL.format(path=path))
    sentence = SENTENCES.get(primary, "{path} cannot be used ({error}). `greenroom doctor` checks it.")
    if primary == sqlite3.SQLITE_CANTOPEN and os.path.lexists(path):
        sentence = forbidden(path) or sentence
    return StoreFault(sentence.format(path=path, error=error))


def forbidden(path: Path) -> str | None:
    """What this process is not permitted to do with the file; SQLite only says that it could not."""
    if not os.access(path, os.R_OK):
        return UNREADABLE
    return None if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else READ_ONLY


def translate_commit(error: sqlite3.Error, path: Path) -> WorldFault:
    """An error of COMMIT itself. A full or locked disk is a clear no: the commit mark is written last."""
    if code(error) in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY}:
        return translate(error, path)
    return CommitUnknown(
        f"A commit to {path} was cut off ({error}): it may or may not have happened. Compare the head."
    )


def translate_os(error: OSError, path: Path) -> WorldFault:
    """An error of the file system."""
    if error.errno in NO_ROOM:
        return StoreFull(FULL.format(path=path))
    if error.errno in FORBIDDEN:
        return StoreFault((READ_ONLY if readable(error, path) else UNREADABLE).format(path=path))
    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        place = named(error, path)
        return StoreFault(
            f"{place} is a file, or lies under one, where a folder is needed. Move it away, or choose another."
        )
    return StoreFault(
        f"{path} cannot be used ({error.strerror or error}). Check the disk and the folder's permissions."
    )


def named(error: OSError, path: Path) -> Path:
    """The place that the error is about."""
    return Path(error.filename) if isinstance(error.filename, str) else path


def readable(error: OSError, path: Path) -> bool:
    """Whether only writing was forbidden: what is there of the place that the error names may be read."""
    if error.errno == errno.EROFS:
        return True
    place = named(error, path)
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    return os.access(place, os.R_OK | (os.X_OK if place.is_dir() else 0))


def no_room(path: Path) -> bool:
    """Whether the disk has no room left for anything."""
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < ROOM


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise what goes wrong inside as ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, path) from error
    except OSError as error:
        raise translate_os(error, path) from error
