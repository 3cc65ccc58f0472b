"""Translate errors of SQLite and the file system: what happened, to which file, what to do now."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from greenroom.core.base.errors import CommitUnknown, StoreFault, StoreFull, WorldFault

READ_ONLY: Final = "storage.read_only"
UNREADABLE: Final = "storage.unreadable"

FAULT_CODES: Final = {
    sqlite3.SQLITE_BUSY: "storage.busy",
    sqlite3.SQLITE_LOCKED: "storage.locked",
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: "storage.cannot_open",
    sqlite3.SQLITE_NOTADB: "storage.not_database",
    sqlite3.SQLITE_CORRUPT: "storage.damaged",
    sqlite3.SQLITE_IOERR: "storage.disk_failed",
    sqlite3.SQLITE_INTERRUPT: "storage.closed_while_read",
}

DAMAGE_CODES: Final = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})
DISK_FULL: Final = "storage.disk_full"
MIN_FREE_BYTES: Final = 64 * 1024
"""Free bytes below which any failed write counts as a full disk."""

NO_SPACE_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
FORBIDDEN_ERRNOS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def read_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; 0 if the error comes from the Python module."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def is_database_error(error: Exception) -> bool:
    """Return whether the database itself failed, not just one caller's change."""
    return isinstance(error, sqlite3.DatabaseError) and type(error) in {sqlite3.DatabaseError, sqlite3.OperationalError}


def make_missing_fault(stream: str) -> StoreFault:
    """Return the fault for a stream that does not exist."""
    return StoreFault("storage.unknown_stream", stream=stream)


def translate_error(error: sqlite3.Error, path: Path) -> WorldFault:
    """Translate an error before the commit: the transaction wrote nothing."""
    primary = read_code(error)
    if primary == sqlite3.SQLITE_FULL or (primary == sqlite3.SQLITE_IOERR and is_disk_full(path)):
        return StoreFull(DISK_FULL, path=path)
    code = FAULT_CODES.get(primary, "storage.unusable")
    if primary == sqlite3.SQLITE_CANTOPEN and os.path.lexists(path):
        code = find_missing_permission(path) or code
    return StoreFault(code, path=path, error=error)


def find_missing_permission(path: Path) -> str | None:
    """Return the code of the missing permission; None if nothing is missing. SQLite does not give the reason."""
    if not os.access(path, os.R_OK):
        return UNREADABLE
    return None if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else READ_ONLY


def translate_commit(error: sqlite3.Error, path: Path) -> WorldFault:
    """Translate an error of COMMIT. After "full", "busy" or "read-only", the commit certainly did not happen."""
    if read_code(error) in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY}:
        return translate_error(error, path)
    return CommitUnknown("storage.commit_unknown", path=path, error=error)


def translate_os(error: OSError, path: Path) -> WorldFault:
    """Translate an error of the file system."""
    if error.errno in NO_SPACE_ERRNOS:
        return StoreFull(DISK_FULL, path=path)
    if error.errno in FORBIDDEN_ERRNOS:
        return StoreFault(READ_ONLY if is_readable(error, path) else UNREADABLE, path=path)
    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        return StoreFault("storage.folder_expected", place=find_error_path(error, path))
    return StoreFault("storage.path_unusable", path=path, strerror=error.strerror or error)


def find_error_path(error: OSError, path: Path) -> Path:
    """Return the path that the error names, or `path`."""
    return Path(error.filename) if isinstance(error.filename, str) else path


def is_readable(error: OSError, path: Path) -> bool:
    """Return whether the path in the error can be read, so that only writing is forbidden."""
    if error.errno == errno.EROFS:
        return True
    place = find_error_path(error, path)
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    return os.access(place, os.R_OK | (os.X_OK if place.is_dir() else 0))


def is_disk_full(path: Path) -> bool:
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Translate SQLite and file system errors that are raised inside the block."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate_error(error, path) from error
    except OSError as error:
        raise translate_os(error, path) from error
