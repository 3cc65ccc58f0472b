"""Every change but the append: each function runs in the writer thread, in a transaction of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from greenroom.adapters.storage.sqlite.append import Value, insert
from greenroom.adapters.storage.sqlite.head import Mark
from greenroom.adapters.storage.sqlite.lease import Leases
from greenroom.adapters.storage.sqlite.tickets import Answer
from greenroom.core.base.errors import StaleOwner, StoreFault
from greenroom.core.ports.log import ArchiveRow, Held, InboxRow, Lease, Snapshot

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


def missing(stream: str) -> StoreFault:
    """What to say about a name that no stream has."""
    return StoreFault(f"There is no stream {stream!r}. `greenroom tasks` lists what there is.")


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
