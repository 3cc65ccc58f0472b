"""Every change but the append, and every question to the database.

A change runs in the writer thread, in a transaction of its own. A question runs in a reader thread, on a connection of
its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from greenroom.adapters.storage.sqlite.faults import code, missing
from greenroom.adapters.storage.sqlite.files import Leases
from greenroom.adapters.storage.sqlite.opening import NEWEST, Mark
from greenroom.adapters.storage.sqlite.writer import Answer, Value, insert
from greenroom.core.base.errors import StaleOwner
from greenroom.core.ports.log import ArchiveRow, Head, Held, InboxRow, Lease, Snapshot, StoredEvent, StreamInfo

SWEEP: Final = 5000
"""Rows of a forgotten stream deleted at once: appends of other streams go in between."""

STAGED: Final = "INSERT INTO temp.staged (token, kind, key, owner, version, data) VALUES "
STAGE: Final = """
CREATE TEMP TABLE IF NOT EXISTS staged (
    token INTEGER, kind TEXT, key TEXT, owner TEXT, version INTEGER, data BLOB)
"""
UNSTAGE: Final = """
INSERT INTO archive (id, kind, key, owner, data)
SELECT ? + version, kind, key, owner, data FROM temp.staged WHERE token = ? ORDER BY version
"""


def stream_id(db: sqlite3.Connection, stream: str) -> int:
    """The number behind the name."""
    row = db.execute("SELECT id FROM streams WHERE stream = ?", (stream,)).fetchone()
    if row is None:
        raise missing(stream)
    return int(row[0])


def create(db: sqlite3.Connection, stream: str, at: int) -> Answer[bool]:
    """Make an empty stream."""
    made = db.execute("INSERT OR IGNORE INTO streams (stream, created_at) VALUES (?, ?)", (stream, at))
    if made.rowcount == 0:
        return False, None
    return True, Mark(stream_id=stream_id(db, stream))


def put(db: sqlite3.Connection, stream: str, row: InboxRow) -> Answer[bool]:
    """Put an intent into the inbox, once."""
    added = db.execute(
        "INSERT OR IGNORE INTO inbox (stream_id, intent_id, by, data, put_at) VALUES (?, ?, ?, ?, ?)",
        (stream_id(db, stream), row.intent_id, row.by, row.data, row.put_at),
    )
    return (True, Mark(inbox=added.lastrowid or 0)) if added.rowcount else (False, None)


def save_snapshot(db: sqlite3.Connection, stream: str, snapshot: Snapshot) -> Answer[None]:
    """Keep it instead of the older ones."""
    number = stream_id(db, stream)
    db.execute("DELETE FROM snapshots WHERE stream_id = ? AND version <= ?", (number, snapshot.version))
    values = (number, snapshot.version, snapshot.fingerprint, snapshot.data)
    db.execute("INSERT INTO snapshots (stream_id, version, fingerprint, data) VALUES (?, ?, ?, ?)", values)
    return None, None


class Locking:
    """A change that first locks the stream's file, and unlocks it again when the change fails."""

    def __init__(self, leases: Leases, stream: str) -> None:
        self.leases = leases
        self.stream = stream
        self._took = False

    def lock(self, *, force: bool = False) -> bool:
        """Whether the lock is ours now."""
        ours = self.leases.mine(self.stream)
        taken = self.leases.take(self.stream, force=force)
        self._took = taken and not ours
        return taken

    def undo(self) -> None:
        """The transaction failed."""
        if self._took:
            self.leases.drop(self.stream)


class Acquire(Locking):
    """Lock the stream and raise its epoch: both inside one transaction, so that two who want it come one by one."""

    def __init__(self, leases: Leases, stream: str, owner: str, *, force: bool, made_at: int | None = None) -> None:
        super().__init__(leases, stream)
        self._owner = owner
        self._force = force
        self._made_at = made_at

    def __call__(self, db: sqlite3.Connection) -> Answer[Lease | Held]:
        """Become the owner, or say who is."""
        if self._made_at is not None:
            create(db, self.stream, self._made_at)
        number = stream_id(db, self.stream)
        epoch, before = db.execute("SELECT epoch, owner FROM streams WHERE id = ?", (number,)).fetchone()
        held = self.leases.mine(self.stream)  # also by this very owner: two of its tasks may want it
        if (held and not self._force) or not self.lock(force=self._force):
            return Held(stream=self.stream, owner=before, epoch=epoch), None
        db.execute("UPDATE streams SET epoch = ?, owner = ? WHERE id = ?", (epoch + 1, self._owner, number))
        return Lease(stream=self.stream, owner=self._owner, epoch=epoch + 1), Mark(stream_id=number, epoch=epoch + 1)


class Forget(Locking):
    """Take the stream's name and its lock file away; its rows are swept afterwards."""

    def __call__(self, db: sqlite3.Connection) -> Answer[int]:
        """The number that the stream had."""
        number = stream_id(db, self.stream)
        if not self.lock():
            owner = db.execute("SELECT owner FROM streams WHERE id = ?", (number,)).fetchone()[0]
            raise StaleOwner(f"Stream {self.stream!r} belongs to {owner!r}, who is alive. Stop it first, then forget.")
        db.execute("INSERT INTO forgotten (stream_id) VALUES (?)", (number,))
        for table in ("snapshots", "inbox", "blob_refs"):
            db.execute(f"DELETE FROM {table} WHERE stream_id = ?", (number,))
        db.execute("DELETE FROM meta WHERE key = 'questions:' || ?", (number,))
        db.execute("DELETE FROM streams WHERE id = ?", (number,))
        self.leases.remove(self.stream)
        return number, None


def release(db: sqlite3.Connection, leases: Leases, lease: Lease) -> Answer[None]:
    """Give the stream up; a stale lease has nothing to give."""
    given = 1
    try:
        key = (lease.stream, lease.epoch)
        given = db.execute("UPDATE streams SET owner = '' WHERE stream = ? AND epoch = ?", key).rowcount
    finally:
        # Whoever lost the stream to a newer lease of this same instance must not unlock that one's file.
        if given or not leases.mine(lease.stream):
            leases.drop(lease.stream)
    return None, None


def sweep(db: sqlite3.Connection, number: int) -> Answer[bool]:
    """Delete some rows of a forgotten stream; True when none is left."""
    events = "SELECT id FROM events WHERE id BETWEEN ? AND ? LIMIT ?"
    span = (number << 40, ((number + 1) << 40) - 1, SWEEP)
    deleted = db.execute(f"DELETE FROM events WHERE id IN ({events})", span).rowcount
    archive = "SELECT id FROM archive WHERE id BETWEEN ? AND ? LIMIT ?"
    deleted += db.execute(f"DELETE FROM archive WHERE id IN ({archive})", span).rowcount
    if deleted == 0:
        db.execute("DELETE FROM forgotten WHERE stream_id = ?", (number,))
    return deleted == 0, None


def stage(db: sqlite3.Connection, token: int, rows: Sequence[ArchiveRow]) -> Answer[None]:
    """Keep rows of a new archive aside, in a temporary table that dies with the process."""
    db.execute(STAGE)
    values: list[Value] = []
    for row in rows:
        values += (token, *row)
    insert(db, STAGED, 6, values)
    return None, None


def unstage(db: sqlite3.Connection, token: int, stream: str) -> Answer[int]:
    """Put the rows kept aside in the place of the stream's archive."""
    db.execute(STAGE)
    number = stream_id(db, stream)
    span = (number << 40, ((number + 1) << 40) - 1)
    db.execute("DELETE FROM archive WHERE id BETWEEN ? AND ?", span)
    count = db.execute(UNSTAGE, (number << 40, token)).rowcount
    size = "SELECT coalesce(sum(length(data)), 0) FROM archive WHERE id BETWEEN ? AND ?"
    db.execute(f"UPDATE streams SET archive_bytes = ({size}) WHERE id = ?", (*span, number))
    discard(db, token)
    return count, None


def discard(db: sqlite3.Connection, token: int) -> Answer[None]:
    """Throw away what was kept aside."""
    db.execute(STAGE)
    db.execute("DELETE FROM temp.staged WHERE token = ?", (token,))
    return None, None


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
            event_bytes=events,
            archive_bytes=archive,
            blob_bytes=blobs,
            questions=questions,
        )
        for name, created_at, version, epoch, batch, owner, events, archive, blobs, questions in db.execute(STREAMS)
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
