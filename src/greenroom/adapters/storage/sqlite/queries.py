"""Every question to the database: each function runs in a reader thread, on a connection of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from greenroom.adapters.storage.sqlite.changes import missing, stream_id
from greenroom.adapters.storage.sqlite.faults import code
from greenroom.adapters.storage.sqlite.lease import Leases
from greenroom.adapters.storage.sqlite.schema import NEWEST
from greenroom.core.ports.log import ArchiveRow, Head, Held, InboxRow, Snapshot, StoredEvent, StreamInfo

PAGE: Final = 500

STREAMS: Final = """
SELECT stream, created_at, version, batch_epoch, batch, owner, event_bytes, archive_bytes, blob_bytes, value
FROM streams LEFT JOIN meta ON key = 'questions:' || id ORDER BY created_at, id
"""
COUNTS: Final = """
SELECT stream, version, (SELECT count(*) FROM events WHERE events.id > streams.id << 40
                         AND events.id <= (streams.id << 40) + version) AS found,
       (SELECT count(*) FROM events WHERE events.id > (streams.id << 40) + version
        AND events.id < (streams.id + 1) << 40) AS beyond
FROM streams WHERE found <> version OR beyond > 0
"""

ROW: Final = f"SELECT kind, key, owner, id & {NEWEST}, data FROM archive"
EVENT: Final = f"SELECT events.id & {NEWEST}, at, type, data, ends FROM events"
BEFORE: Final = "json_extract(CAST(events.data AS TEXT), '$.previous')"
CHAIN: Final = f"""
WITH RECURSIVE back (id, depth) AS (
    SELECT :base + :version, 1 WHERE :version > 0
    UNION ALL
    SELECT :base + {BEFORE}, depth + 1 FROM back JOIN events ON events.id = back.id
    WHERE {BEFORE} > 0 AND depth < :limit
)
{EVENT} JOIN back ON events.id = back.id ORDER BY events.id
"""


def stored(version: int, at: int, kind: str, data: bytes, ends: int) -> StoredEvent:
    """A row of the log."""
    return StoredEvent(version, at, kind, data, bool(ends))


def head(db: sqlite3.Connection, stream: str) -> Head:
    """Where the stream stands."""
    row = db.execute("SELECT version, batch_epoch, batch FROM streams WHERE stream = ?", (stream,)).fetchone()
    if row is None:
        raise missing(stream)
    return Head(version=row[0], epoch=row[1], batch=row[2])


def page(db: sqlite3.Connection, stream: str, after: int, upto: int | None) -> Sequence[StoredEvent]:
    """The next events, at most one page of them."""
    first = (stream_id(db, stream) << 40) + after
    last = first - after + (NEWEST if upto is None else upto)
    rows = db.execute(f"{EVENT} WHERE id > ? AND id <= ? ORDER BY id LIMIT ?", (first, last, PAGE)).fetchall()
    return [stored(*row) for row in rows]


def load_snapshot(db: sqlite3.Connection, stream: str, fingerprint: str, upto: int | None) -> Snapshot | None:
    """The newest snapshot of these reducers."""
    row = db.execute(
        "SELECT version, data FROM snapshots WHERE stream_id = ? AND fingerprint = ? AND version <= ? "
        "ORDER BY version DESC LIMIT 1",
        (stream_id(db, stream), fingerprint, NEWEST if upto is None else upto),
    ).fetchone()
    return None if row is None else Snapshot(version=row[0], fingerprint=fingerprint, data=row[1])


def archived(
    db: sqlite3.Connection, stream: str, kind: str, owner: str | None, after: int, limit: int
) -> Sequence[ArchiveRow]:
    """Archive rows by version."""
    base = stream_id(db, stream) << 40
    whose, name = ("", ()) if owner is None else ("AND owner = ?", (owner,))
    rows = db.execute(
        f"{ROW} WHERE kind = ? {whose} AND id > ? AND id <= ? ORDER BY id LIMIT ?",
        (kind, *name, base + after, base + NEWEST, limit),
    ).fetchall()
    return [ArchiveRow(*row) for row in rows]


def chain(db: sqlite3.Connection, stream: str, version: int, limit: int) -> Sequence[StoredEvent]:
    """The events that lead back from this one, oldest first."""
    rows = db.execute(CHAIN, {"base": stream_id(db, stream) << 40, "version": version, "limit": limit}).fetchall()
    return [stored(*row) for row in rows]


def pick(db: sqlite3.Connection, stream: str, versions: Sequence[int]) -> Sequence[StoredEvent]:
    """Single events, by version."""
    base = stream_id(db, stream) << 40
    found: list[StoredEvent] = []
    for start in range(0, len(versions), PAGE):
        some = [base + version for version in versions[start : start + PAGE]]
        places = ", ".join("?" * len(some))
        found += [stored(*row) for row in db.execute(f"{EVENT} WHERE events.id IN ({places})", some)]
    return sorted(found)


def newest(db: sqlite3.Connection, stream: str, type_: str, field: str, value: str) -> StoredEvent | None:
    """The newest event of a type that says this. No index: one on steps would cost each commit more than it saves."""
    base = stream_id(db, stream) << 40
    row = db.execute(
        f"{EVENT} WHERE id > ? AND id <= ? AND type = ? AND json_extract(CAST(data AS TEXT), '$.' || ?) = ? "
        "ORDER BY id DESC LIMIT 1",
        (base, base + NEWEST, type_, field, value),
    ).fetchone()
    return None if row is None else stored(*row)


def find(db: sqlite3.Connection, stream: str, kind: str, key: str) -> ArchiveRow | None:
    """The newest archive row of this key."""
    base = stream_id(db, stream) << 40
    row = db.execute(
        f"{ROW} WHERE kind = ? AND key = ? AND id > ? AND id <= ? ORDER BY id DESC LIMIT 1",
        (kind, key, base, base + NEWEST),
    ).fetchone()
    return None if row is None else ArchiveRow(*row)


def waiting(db: sqlite3.Connection, stream: str, after: int = 0) -> tuple[Sequence[InboxRow], int]:
    """The inbox rows that nobody took, put after this one; and the last one's number."""
    rows = db.execute(
        "SELECT seq, intent_id, by, data, put_at FROM inbox "
        "WHERE stream_id = ? AND outcome IS NULL AND seq > ? ORDER BY seq",
        (stream_id(db, stream), after),
    ).fetchall()
    found = [InboxRow(intent_id=intent, by=by, data=data, put_at=at) for _, intent, by, data, at in rows]
    return found, rows[-1][0] if rows else after


def outcome(db: sqlite3.Connection, stream: str, intent_id: str) -> bytes | None:
    """The answer to an intent, if there is one."""
    key = (stream_id(db, stream), intent_id)
    row = db.execute("SELECT outcome FROM inbox WHERE stream_id = ? AND intent_id = ?", key).fetchone()
    return None if row is None else row[0]


def holder(db: sqlite3.Connection, leases: Leases, stream: str) -> Held | None:
    """The live owner."""
    alive = leases.live(stream)  # before the row: who is alive now has written its name already
    row = db.execute("SELECT owner, epoch FROM streams WHERE stream = ?", (stream,)).fetchone()
    if row is None:
        raise missing(stream)
    owner, epoch = row
    return Held(stream=stream, owner=owner, epoch=epoch) if alive and owner else None


def streams(db: sqlite3.Connection, leases: Leases) -> Sequence[StreamInfo]:
    """All streams. Sizes are counted while writing, so nothing is scanned."""
    return [
        StreamInfo(
            stream=name,
            created_at=created_at,
            head=Head(version=version, epoch=epoch, batch=batch),
            owner=owner if owner and leases.live(name) else None,
            event_bytes=event_bytes,
            archive_bytes=archive_bytes,
            blob_bytes=blob_bytes,
            questions=questions,
        )
        for (
            name,
            created_at,
            version,
            epoch,
            batch,
            owner,
            event_bytes,
            archive_bytes,
            blob_bytes,
            questions,
        ) in db.execute(STREAMS)
    ]


def forgotten(db: sqlite3.Connection) -> Sequence[int]:
    """The streams that were forgotten and not swept to the end."""
    return [row[0] for row in db.execute("SELECT stream_id FROM forgotten")]


def unnamed(db: sqlite3.Connection, digests: Sequence[str]) -> Sequence[str]:
    """Those of these blobs that no event names."""
    query = "SELECT 1 FROM blob_refs WHERE digest = ? LIMIT 1"
    return [digest for digest in digests if db.execute(query, (digest,)).fetchone() is None]


def named(db: sqlite3.Connection, after: str) -> Sequence[str]:
    """The next blobs that events name, at most one page of them."""
    query = "SELECT DISTINCT digest FROM blob_refs WHERE digest > ? ORDER BY digest LIMIT ?"
    return [row[0] for row in db.execute(query, (after, PAGE))]


def damage(db: sqlite3.Connection) -> Sequence[str]:
    """What is wrong with the tables, one sentence each."""
    found: list[str] = []
    try:
        for (what,) in db.execute("PRAGMA integrity_check"):
            found += [] if what == "ok" else [f"The database is damaged: {what}."]
        for stream, version, there, beyond in db.execute(COUNTS):
            found.append(f"Stream {stream!r} says it has {version} events: {there} are there and {beyond} lie beyond.")
    except sqlite3.DatabaseError as error:
        if code(error) != sqlite3.SQLITE_CORRUPT:
            raise
        found.append(f"The database is damaged: {error}.")
    return found
