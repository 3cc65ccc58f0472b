"""The tables, how a database is born, and what is looked at before an existing one is trusted."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

from greenroom.adapters.storage.database import connect
from greenroom.adapters.storage.sqlite.disk import flush_folder
from greenroom.core.base.errors import StoreFault
from greenroom.core.ports.codec import SCHEMA

APPLICATION_ID: Final = 0x47524E52
"""`GRNR` in the file's header: this database is ours."""

NEWEST: Final = (1 << 40) - 1
"""The highest version of a stream: an event's row id is `stream id << 40 | version`.

So the events of a stream lie together in version order in one plain B-tree. A key of (stream, version) costs a quarter
more per commit, and rows over 1 KB would each take an overflow page.
"""

# The row id of an archive row is made like that of its event. Steps have none: they are by far the most, an index on
# them would touch as many pages per commit as there are agents, and the log itself leads from one to the one before.
TABLES: Final = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE streams (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    stream        TEXT    NOT NULL UNIQUE,
    created_at    INTEGER NOT NULL,
    version       INTEGER NOT NULL DEFAULT 0,
    epoch         INTEGER NOT NULL DEFAULT 0,
    owner         TEXT    NOT NULL DEFAULT '',
    batch         TEXT    NOT NULL DEFAULT '',
    batch_epoch   INTEGER NOT NULL DEFAULT 0,
    event_bytes   INTEGER NOT NULL DEFAULT 0,
    archive_bytes INTEGER NOT NULL DEFAULT 0,
    blob_bytes    INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE events (
    id   INTEGER PRIMARY KEY,
    at   INTEGER NOT NULL,
    type TEXT    NOT NULL,
    data BLOB    NOT NULL,
    ends INTEGER NOT NULL
);
CREATE TABLE archive (
    id    INTEGER PRIMARY KEY,
    kind  TEXT    NOT NULL,
    key   TEXT    NOT NULL,
    owner TEXT    NOT NULL,
    data  BLOB    NOT NULL
);
CREATE INDEX archive_by_key ON archive (kind, key, id);
CREATE INDEX archive_by_owner ON archive (kind, owner, id);
CREATE TABLE snapshots (
    stream_id   INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    fingerprint TEXT    NOT NULL,
    data        BLOB    NOT NULL,
    PRIMARY KEY (stream_id, version)
);
CREATE TABLE inbox (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    stream_id   INTEGER NOT NULL,
    intent_id   TEXT    NOT NULL,
    by          TEXT    NOT NULL,
    data        BLOB    NOT NULL,
    put_at      INTEGER NOT NULL,
    outcome     BLOB,
    answered_at INTEGER,
    UNIQUE (stream_id, intent_id)
);
CREATE INDEX inbox_waiting ON inbox (stream_id, seq) WHERE outcome IS NULL;
CREATE TABLE blob_refs (
    digest    TEXT    NOT NULL,
    stream_id INTEGER NOT NULL,
    size      INTEGER NOT NULL,
    PRIMARY KEY (digest, stream_id)
) WITHOUT ROWID;
CREATE TABLE forgotten (stream_id INTEGER PRIMARY KEY);
CREATE VIEW event_log AS
    SELECT stream, events.id & {NEWEST} AS version, at, type, CAST(data AS TEXT) AS data
    FROM events JOIN streams ON streams.id = events.id >> 40;
"""


def bear(path: Path) -> None:
    """Make the database beside its place and link it in whole, so that nobody ever opens half of one."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    fresh = Path(name)
    try:
        with closing(connect(fresh, timeout=0)) as db:
            # Small ones: a commit writes whole pages, and most commits are a few hundred bytes of news.
            db.execute("PRAGMA page_size = 512")
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before anything is written, or it has no effect
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.executescript(f"BEGIN; {TABLES} COMMIT;")
            db.execute("INSERT INTO meta VALUES ('schema', ?)", (SCHEMA,))
            db.execute("PRAGMA journal_mode = WAL")
        os.fsync(handle)
        path.hardlink_to(fresh)
    except FileExistsError:
        return  # another process was quicker: its database is as good
    finally:
        os.close(handle)
        fresh.unlink(missing_ok=True)
    flush_folder(path.parent)


def examine(db: sqlite3.Connection, path: Path) -> int:
    """The schema version of a database that is ours and not too new; nothing is written."""
    if path.stat().st_size == 0:
        raise StoreFault(f"{path} is empty. Restore a copy, or delete it if nothing was ever in it.")
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreFault(
            f"{path} is a database of another program; it was not touched. Move it away, or choose another folder."
        )
    row = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    if row is None:
        raise StoreFault(f"{path} does not say which schema it has: it is damaged. Restore a copy.")
    if row[0] > SCHEMA:
        raise StoreFault(
            f"{path} was written by a newer Greenroom (schema {row[0]}, this one knows {SCHEMA}); it was not touched. "
            "Update Greenroom, or choose another folder."
        )
    return int(row[0])
