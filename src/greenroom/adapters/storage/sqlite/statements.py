"""Every change except the append, and every query.

A change runs in the writer thread, in its own transaction. A query runs in a reader thread, on its own connection.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from greenroom.adapters.storage.sqlite.faults import make_missing_fault, read_code
from greenroom.adapters.storage.sqlite.files import LeaseFiles
from greenroom.adapters.storage.sqlite.store_folder import MAX_VERSION, SELECT_MISCOUNTED, CommitMark
from greenroom.adapters.storage.sqlite.writer import ChangeResult, SqlValue, insert_rows
from greenroom.core.base.errors import StaleOwner, translate
from greenroom.core.ports.log import (
    ArchiveRow,
    InboxRow,
    Lease,
    LeaseHolder,
    StateSnapshot,
    StoredEvent,
    StreamHead,
    StreamInfo,
)

ROWS_PER_SWEEP: Final = 5000
"""How many rows of a deleted stream one step removes. Appends of other streams run between two steps."""

INSERT_STREAM: Final = "INSERT OR IGNORE INTO streams (stream, created_at) VALUES (?, ?)"
INSERT_STAGED: Final = "INSERT INTO temp.staged (token, kind, key, owner, version, data) VALUES "
CREATE_STAGED: Final = """
CREATE TEMP TABLE IF NOT EXISTS staged (
    token INTEGER, kind TEXT, key TEXT, owner TEXT, version INTEGER, data BLOB)
"""
MOVE_STAGED: Final = """
INSERT INTO archive (id, kind, key, owner, data)
SELECT ? + version, kind, key, owner, data FROM temp.staged WHERE token = ? ORDER BY version
"""


def find_stream_id(db: sqlite3.Connection, stream: str) -> int:
    """Return the id of a stream. Raise `StoreFault` if there is none."""
    row = db.execute("SELECT id FROM streams WHERE stream = ?", (stream,)).fetchone()
    if row is None:
        raise make_missing_fault(stream)
    return int(row[0])


def create_stream(db: sqlite3.Connection, stream: str, at: int) -> ChangeResult[bool]:
    cursor = db.execute(INSERT_STREAM, (stream, at))
    if cursor.rowcount == 0:
        return False, None
    return True, CommitMark(stream_id=find_stream_id(db, stream))


def put_intent(db: sqlite3.Connection, stream: str, row: InboxRow) -> ChangeResult[bool]:
    """Put an intent into the inbox, unless its id is already there."""
    cursor = db.execute(
        "INSERT OR IGNORE INTO inbox (stream_id, intent_id, by, data, put_at) VALUES (?, ?, ?, ?, ?)",
        (find_stream_id(db, stream), row.intent_id, row.by, row.data, row.put_at),
    )
    return (True, CommitMark(inbox=cursor.lastrowid or 0)) if cursor.rowcount else (False, None)


def save_snapshot(db: sqlite3.Connection, stream: str, snapshot: StateSnapshot) -> ChangeResult[None]:
    """Save a snapshot and delete the older ones by other reducers."""
    number = find_stream_id(db, stream)
    others = "DELETE FROM snapshots WHERE stream_id = ? AND version <= ? AND fingerprint != ?"
    db.execute(others, (number, snapshot.version, snapshot.fingerprint))
    values = (number, snapshot.version, snapshot.fingerprint, snapshot.data)
    db.execute("INSERT OR REPLACE INTO snapshots (stream_id, version, fingerprint, data) VALUES (?, ?, ?, ?)", values)
    return None, None


class LockingChange:
    """A change that locks the stream's file first, and unlocks it if the change fails."""

    def __init__(self, leases: LeaseFiles, stream: str) -> None:
        self.leases = leases
        self.stream = stream
        self._has_taken = False

    def try_lock(self, *, force: bool = False) -> bool:
        """Try to lock the stream; return whether this instance holds the lock."""
        was_mine = self.leases.is_mine(self.stream)
        is_taken = self.leases.try_take(self.stream, force=force)
        self._has_taken = is_taken and not was_mine
        return is_taken

    def undo(self) -> None:
        """Release the lock after a failed transaction."""
        if self._has_taken:
            self.leases.drop(self.stream)


class LeaseAcquisition(LockingChange):
    """Lock a stream and raise its epoch in one transaction, so that two candidates cannot interleave."""

    def __init__(self, leases: LeaseFiles, stream: str, owner: str, *, force: bool, made_at: int | None = None) -> None:
        super().__init__(leases, stream)
        self._owner = owner
        self._force = force
        self._made_at = made_at

    def __call__(self, db: sqlite3.Connection) -> ChangeResult[Lease | LeaseHolder]:
        """Return the new lease, or the current owner."""
        if self._made_at is not None:
            db.execute(INSERT_STREAM, (self.stream, self._made_at))
        row = db.execute("SELECT id, epoch, owner FROM streams WHERE stream = ?", (self.stream,)).fetchone()
        if row is None:
            raise make_missing_fault(self.stream)
        number, epoch, before = row
        is_held = self.leases.is_mine(self.stream)  # also if it is the same owner: two of its tasks may try
        if (is_held and not self._force) or not self.try_lock(force=self._force):
            return LeaseHolder(stream=self.stream, owner=before, epoch=epoch), None
        db.execute("UPDATE streams SET epoch = ?, owner = ? WHERE id = ?", (epoch + 1, self._owner, number))
        return Lease(stream=self.stream, owner=self._owner, epoch=epoch + 1), CommitMark(
            stream_id=number, epoch=epoch + 1
        )


class StreamRemoval(LockingChange):
    """Delete a stream's name and lock file; its rows are removed afterwards."""

    def __call__(self, db: sqlite3.Connection) -> ChangeResult[int]:
        """Delete the stream and return its former id."""
        number = find_stream_id(db, self.stream)
        if not self.try_lock():
            owner = db.execute("SELECT owner FROM streams WHERE id = ?", (number,)).fetchone()[0]
            raise StaleOwner("storage.stream_in_use", stream=self.stream, owner=owner)
        db.execute("INSERT INTO forgotten (stream_id) VALUES (?)", (number,))
        for table in ("snapshots", "inbox", "blob_refs"):
            db.execute(f"DELETE FROM {table} WHERE stream_id = ?", (number,))
        db.execute("DELETE FROM meta WHERE key = 'questions:' || ?", (number,))
        db.execute("DELETE FROM streams WHERE id = ?", (number,))
        self.leases.remove(self.stream)
        return number, None


def release_lease(db: sqlite3.Connection, leases: LeaseFiles, lease: Lease) -> ChangeResult[None]:
    """Release a lease. A stale lease is ignored."""
    count = 1
    try:
        key = (lease.stream, lease.epoch)
        count = db.execute("UPDATE streams SET owner = '' WHERE stream = ? AND epoch = ?", key).rowcount
    finally:
        # A stale lease must not unlock the file of a newer lease of the same instance.
        if count or not leases.is_mine(lease.stream):
            leases.drop(lease.stream)
    return None, None


def sweep(db: sqlite3.Connection, number: int) -> ChangeResult[bool]:
    """Delete some rows of a deleted stream. Return whether none is left."""
    events = "SELECT id FROM events WHERE id BETWEEN ? AND ? LIMIT ?"
    span = (number << 40, ((number + 1) << 40) - 1, ROWS_PER_SWEEP)
    deleted = db.execute(f"DELETE FROM events WHERE id IN ({events})", span).rowcount
    archive = "SELECT id FROM archive WHERE id BETWEEN ? AND ? LIMIT ?"
    deleted += db.execute(f"DELETE FROM archive WHERE id IN ({archive})", span).rowcount
    if deleted == 0:
        db.execute("DELETE FROM forgotten WHERE stream_id = ?", (number,))
    return deleted == 0, None


def stage(db: sqlite3.Connection, token: int, rows: Sequence[ArchiveRow]) -> ChangeResult[None]:
    """Insert rows of a new archive into a temporary table, which ends with the process."""
    db.execute(CREATE_STAGED)
    values: list[SqlValue] = []
    for row in rows:
        values += (token, row.kind, row.key, row.owner, row.version, row.data)
    insert_rows(db, INSERT_STAGED, 6, values)
    return None, None


def unstage(db: sqlite3.Connection, token: int, stream: str) -> ChangeResult[int]:
    """Replace the stream's archive with the staged rows."""
    db.execute(CREATE_STAGED)
    number = find_stream_id(db, stream)
    span = (number << 40, ((number + 1) << 40) - 1)
    db.execute("DELETE FROM archive WHERE id BETWEEN ? AND ?", span)
    count = db.execute(MOVE_STAGED, (number << 40, token)).rowcount
    size = "SELECT coalesce(sum(length(data)), 0) FROM archive WHERE id BETWEEN ? AND ?"
    db.execute(f"UPDATE streams SET archive_bytes = ({size}) WHERE id = ?", (*span, number))
    discard(db, token)
    return count, None


def discard(db: sqlite3.Connection, token: int) -> ChangeResult[None]:
    """Delete the staged rows."""
    db.execute(CREATE_STAGED)
    db.execute("DELETE FROM temp.staged WHERE token = ?", (token,))
    return None, None


PAGE_SIZE: Final = 500

SELECT_STREAMS: Final = """
SELECT stream, created_at, version, batch_epoch, batch, owner, event_bytes, archive_bytes, blob_bytes, value
FROM streams LEFT JOIN meta ON key = 'questions:' || id ORDER BY created_at, id
"""
SELECT_ARCHIVE: Final = f"SELECT kind, key, owner, id & {MAX_VERSION}, data FROM archive"
SELECT_EVENT: Final = f"SELECT events.id & {MAX_VERSION}, at, type, data, ends FROM events"
PREVIOUS_VERSION: Final = "json_extract(CAST(events.data AS TEXT), '$.previous')"
SELECT_CHAIN: Final = f"""
WITH RECURSIVE back (id, depth) AS (
    SELECT :base + :version, 1 WHERE :version > 0
    UNION ALL
    SELECT :base + {PREVIOUS_VERSION}, depth + 1 FROM back JOIN events ON events.id = back.id
    WHERE {PREVIOUS_VERSION} > 0 AND depth < :limit
)
{SELECT_EVENT} JOIN back ON events.id = back.id ORDER BY events.id
"""


def make_event(version: int, at: int, kind: str, data: bytes, ends: int) -> StoredEvent:
    """Convert a row to an event."""
    return StoredEvent(version, at, kind, data, bool(ends))


def read_head(db: sqlite3.Connection, stream: str) -> StreamHead:
    row = db.execute("SELECT version, batch_epoch, batch FROM streams WHERE stream = ?", (stream,)).fetchone()
    if row is None:
        raise make_missing_fault(stream)
    return StreamHead(version=row[0], epoch=row[1], batch=row[2])


def read_page(db: sqlite3.Connection, stream: str, after: int, upto: int | None) -> Sequence[StoredEvent]:
    """Return the next events, at most one page."""
    first = (find_stream_id(db, stream) << 40) + after
    last = first - after + (MAX_VERSION if upto is None else upto)
    rows = db.execute(
        f"{SELECT_EVENT} WHERE id > ? AND id <= ? ORDER BY id LIMIT ?", (first, last, PAGE_SIZE)
    ).fetchall()
    return [make_event(*row) for row in rows]


def load_snapshot(db: sqlite3.Connection, stream: str, fingerprint: str, upto: int | None) -> StateSnapshot | None:
    """Return the newest snapshot with this fingerprint; None if there is none."""
    row = db.execute(
        "SELECT version, data FROM snapshots WHERE stream_id = ? AND fingerprint = ? AND version <= ? "
        "ORDER BY version DESC LIMIT 1",
        (find_stream_id(db, stream), fingerprint, MAX_VERSION if upto is None else upto),
    ).fetchone()
    return None if row is None else StateSnapshot(version=row[0], fingerprint=fingerprint, data=row[1])


def read_archive(
    db: sqlite3.Connection, stream: str, kind: str, owner: str | None, after: int, limit: int
) -> Sequence[ArchiveRow]:
    """Return archive rows in version order."""
    base = find_stream_id(db, stream) << 40
    owner_condition, name = ("", ()) if owner is None else ("AND owner = ?", (owner,))
    rows = db.execute(
        f"{SELECT_ARCHIVE} WHERE kind = ? {owner_condition} AND id > ? AND id <= ? ORDER BY id LIMIT ?",
        (kind, *name, base + after, base + MAX_VERSION, limit),
    ).fetchall()
    return [ArchiveRow(*row) for row in rows]


def read_chain(db: sqlite3.Connection, stream: str, version: int, limit: int) -> Sequence[StoredEvent]:
    """Return the chain of events that ends at this version, oldest first."""
    rows = db.execute(
        SELECT_CHAIN, {"base": find_stream_id(db, stream) << 40, "version": version, "limit": limit}
    ).fetchall()
    return [make_event(*row) for row in rows]


def read_versions(db: sqlite3.Connection, stream: str, versions: Sequence[int]) -> Sequence[StoredEvent]:
    """Return the events at these versions, in version order."""
    base = find_stream_id(db, stream) << 40
    events: list[StoredEvent] = []
    for start in range(0, len(versions), PAGE_SIZE):
        ids = [base + version for version in versions[start : start + PAGE_SIZE]]
        places = ", ".join("?" * len(ids))
        events += [make_event(*row) for row in db.execute(f"{SELECT_EVENT} WHERE events.id IN ({places})", ids)]
    return sorted(events, key=attrgetter("version"))


def find_newest(db: sqlite3.Connection, stream: str, type_: str, field: str, value: str) -> StoredEvent | None:
    """Return the newest event of a type with this value in this field.

    It uses no index: an index on steps would cost each commit more than it saves.
    """
    base = find_stream_id(db, stream) << 40
    row = db.execute(
        f"{SELECT_EVENT} WHERE id > ? AND id <= ? AND type = ? AND json_extract(CAST(data AS TEXT), '$.' || ?) = ? "
        "ORDER BY id DESC LIMIT 1",
        (base, base + MAX_VERSION, type_, field, value),
    ).fetchone()
    return None if row is None else make_event(*row)


def find_archived(db: sqlite3.Connection, stream: str, kind: str, key: str) -> ArchiveRow | None:
    """Return the newest archive row with this key; None if there is none."""
    base = find_stream_id(db, stream) << 40
    row = db.execute(
        f"{SELECT_ARCHIVE} WHERE kind = ? AND key = ? AND id > ? AND id <= ? ORDER BY id DESC LIMIT 1",
        (kind, key, base, base + MAX_VERSION),
    ).fetchone()
    return None if row is None else ArchiveRow(*row)


def read_waiting(db: sqlite3.Connection, stream: str, after: int = 0) -> tuple[Sequence[InboxRow], int]:
    """Return the unanswered inbox rows after this number, and the number of the last one."""
    rows = db.execute(
        "SELECT seq, intent_id, by, data, put_at FROM inbox "
        "WHERE stream_id = ? AND outcome IS NULL AND seq > ? ORDER BY seq",
        (find_stream_id(db, stream), after),
    ).fetchall()
    intents = [InboxRow(intent_id=intent, by=by, data=data, put_at=at) for _, intent, by, data, at in rows]
    return intents, rows[-1][0] if rows else after


def read_outcome(db: sqlite3.Connection, stream: str, intent_id: str) -> bytes | None:
    """Return the outcome of an intent; None if it is not answered."""
    key = (find_stream_id(db, stream), intent_id)
    row = db.execute("SELECT outcome FROM inbox WHERE stream_id = ? AND intent_id = ?", key).fetchone()
    return None if row is None else row[0]


def find_holder(db: sqlite3.Connection, leases: LeaseFiles, stream: str) -> LeaseHolder | None:
    """Return the live owner of a stream; None if there is none."""
    alive = leases.is_live(stream)  # check before reading the row: a live owner has already written its name
    row = db.execute("SELECT owner, epoch FROM streams WHERE stream = ?", (stream,)).fetchone()
    if row is None:
        raise make_missing_fault(stream)
    owner, epoch = row
    return LeaseHolder(stream=stream, owner=owner, epoch=epoch) if alive and owner else None


def list_streams(db: sqlite3.Connection, leases: LeaseFiles) -> Sequence[StreamInfo]:
    """Return all streams. Sizes are counted on write, so nothing is scanned."""
    return [
        StreamInfo(
            stream=name,
            created_at=created_at,
            head=StreamHead(version=version, epoch=epoch, batch=batch),
            owner=owner if owner and leases.is_live(name) else None,
            event_bytes=events,
            archive_bytes=archive,
            blob_bytes=blobs,
            questions=questions,
        )
        for name, created_at, version, epoch, batch, owner, events, archive, blobs, questions in db.execute(
            SELECT_STREAMS
        )
    ]


def list_forgotten(db: sqlite3.Connection) -> Sequence[int]:
    """Return the ids of deleted streams that still have rows."""
    return [row[0] for row in db.execute("SELECT stream_id FROM forgotten")]


def filter_unreferenced(db: sqlite3.Connection, digests: Sequence[str]) -> Sequence[str]:
    """Return those of these blobs that no event references."""
    query = "SELECT 1 FROM blob_refs WHERE digest = ? LIMIT 1"
    return [digest for digest in digests if db.execute(query, (digest,)).fetchone() is None]


def list_referenced(db: sqlite3.Connection, after: str) -> Sequence[str]:
    """Return the next blobs that events reference, at most one page."""
    query = "SELECT DISTINCT digest FROM blob_refs WHERE digest > ? ORDER BY digest LIMIT ?"
    return [row[0] for row in db.execute(query, (after, PAGE_SIZE))]


def find_damage(db: sqlite3.Connection) -> Sequence[str]:
    """Return one sentence for each damage in the tables."""
    problems: list[str] = []
    try:
        for (what,) in db.execute("PRAGMA integrity_check"):
            problems += [] if what == "ok" else [translate("storage.database_damaged", error=what)]
        for stream, version, there, beyond in db.execute(SELECT_MISCOUNTED):
            problems.append(translate("storage.miscounted", stream=stream, version=version, there=there, beyond=beyond))
    except sqlite3.DatabaseError as error:
        if read_code(error) != sqlite3.SQLITE_CORRUPT:
            raise
        problems.append(translate("storage.database_damaged", error=error))
    return problems
