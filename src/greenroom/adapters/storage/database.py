"""Opening the database file for writing or reading, and the names of its teams.

This module imports nothing heavy, because shell completion waits for it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, Literal

DATABASE_NAME: Final = "greenroom.db"
SHELL_TIMEOUT_S: Final = 1.0
"""How long shell completion waits for a lock, in seconds."""

ConnectMode = Literal["rw", "ro", "frozen"]


class FrozenConnection(sqlite3.Connection):
    """A connection that does not see later changes. Open another one to see them.

    It reads a file in a read-only folder, where SQLite could not create its temporary files.
    """


def connect(
    path: Path, *, timeout: float, mode: ConnectMode = "rw", connection: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    """Open a connection in autocommit mode; callers send BEGIN. Only `rw` may repair a damaged WAL."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{'immutable=1' if mode == 'frozen' else f'mode={mode}'}",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=600,
        factory=FrozenConnection if mode == "frozen" else connection,
    )


def connect_read_only(
    path: Path, *, timeout: float, connection: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    """Open a connection that changes nothing, even in a read-only folder."""
    db = connect(path, timeout=timeout, mode="ro", connection=connection)
    try:
        db.execute("PRAGMA writable_schema = ON")  # so that the rest of a file that was cut off can be read
        db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.OperationalError as error:
        db.close()
        if not is_scratch_refused(error) or _has_wal(path):
            raise
        return connect(path, timeout=timeout, mode="frozen")
    except sqlite3.Error:
        db.close()
        raise
    return db


def list_team_names(home: Path) -> Sequence[str]:
    """Return the names of all teams, oldest first; none if there is no store."""
    if not (home / DATABASE_NAME).exists():
        return []
    with closing(connect_read_only(home / DATABASE_NAME, timeout=SHELL_TIMEOUT_S)) as db:
        return [row[0] for row in db.execute("SELECT stream FROM streams ORDER BY created_at, id")]


def is_scratch_refused(error: sqlite3.OperationalError) -> bool:
    """Return whether SQLite could not create or write its files beside the database."""
    return error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}


def _has_wal(path: Path) -> bool:
    """Return whether some commits are still in the WAL."""
    wal = path.with_name(f"{path.name}-wal")
    return wal.exists() and wal.stat().st_size > 0
