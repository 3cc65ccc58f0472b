"""The database file: how it is opened, for writing or only for looking, and the names of the teams in it.

Nothing heavy is imported here: a shell that completes an id waits for it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, Literal

FILE: Final = "greenroom.db"
BRIEF: Final = 1.0
"""Seconds that a shell may wait for a lock."""

Mode = Literal["rw", "ro", "frozen"]


class Frozen(sqlite3.Connection):
    """A connection to what does not change while it is open, or is not there yet: to see something new, open another.

    So a file is read whose folder cannot be written: SQLite would need its scratch files beside it.
    """


def connect(
    path: Path, *, timeout: float, mode: Mode = "rw", connection: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    """A connection in autocommit mode: we say BEGIN ourselves. All but `rw` leave even a damaged WAL as it is."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{'immutable=1' if mode == 'frozen' else f'mode={mode}'}",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=600,
        factory=Frozen if mode == "frozen" else connection,
    )


def connect_to_look(
    path: Path, *, timeout: float, connection: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    """A connection that changes nothing, also where nothing can be changed."""
    db = connect(path, timeout=timeout, mode="ro", connection=connection)
    try:
        db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.OperationalError as error:
        db.close()
        if not refuses_scratch(error) or _has_wal(path):
            raise
        return connect(path, timeout=timeout, mode="frozen")
    except sqlite3.Error:
        db.close()
        raise
    return db


def names(home: Path) -> Sequence[str]:
    """The names of all teams, oldest first; none where there is no store."""
    if not (home / FILE).exists():
        return []
    with closing(connect_to_look(home / FILE, timeout=BRIEF)) as db:
        return [row[0] for row in db.execute("SELECT stream FROM streams ORDER BY created_at, id")]


def refuses_scratch(error: sqlite3.OperationalError) -> bool:
    """Whether SQLite could not make or write the files that it needs beside the database."""
    return error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}


def _has_wal(path: Path) -> bool:
    """Whether there are commits that stand beside the file and not yet in it."""
    wal = path.with_name(f"{path.name}-wal")
    return wal.exists() and wal.stat().st_size > 0
