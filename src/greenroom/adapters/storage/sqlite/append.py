"""The hot path: how batches become rows. The number of statements does not grow with the number of events.

Each statement lets the event loop take the interpreter, and under load it comes back 5 ms later: 600 rows by
`executemany` took 4.8 s beside a busy loop, as rows of a few statements 40 ms.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from greenroom.adapters.storage.sqlite.blobs import BlobFiles
from greenroom.adapters.storage.sqlite.head import Mark
from greenroom.core.base.errors import Bug, StaleOwner, StoreFault, WorldFault
from greenroom.core.ports.log import Append

Value = str | int | bytes

ROWS: Final = 250
"""Rows per statement: 1,500 variables at most, where SQLite allows 32,766."""

EVENTS: Final = "INSERT INTO events (id, at, type, data) VALUES "
ARCHIVE: Final = "INSERT INTO archive (stream_id, kind, key, owner, version, data) VALUES "

# The one statement that decides who may write: stale epoch, stale version, no owner, no stream all change 0 rows.
FENCE: Final = """
UPDATE streams SET version = version + ?, batch = ?, batch_epoch = epoch,
    event_bytes = event_bytes + ?, archive_bytes = archive_bytes + ?
WHERE id = ? AND version = ? AND epoch = ? AND owner <> ''
"""
TAKE: Final = """
UPDATE inbox SET outcome = ?, answered_at = ? WHERE stream_id = ? AND intent_id = ? AND outcome IS NULL
"""


@lru_cache(maxsize=4 * ROWS)
def statement(head: str, width: int, rows: int) -> str:
    """The text that inserts this many rows; the connection keeps it prepared."""
    return head + ", ".join(["(" + ", ".join("?" * width) + ")"] * rows)


def insert(db: sqlite3.Connection, head: str, width: int, values: Sequence[Value]) -> None:
    """Insert rows, given one after the other in one flat list."""
    for start in range(0, len(values), width * ROWS):
        part = values[start : start + width * ROWS]
        db.execute(statement(head, width, len(part) // width), part)


class Appender:
    """Writes batches inside a transaction that somebody else begins and commits."""

    def __init__(self, blobs: BlobFiles, clock: Callable[[], float]) -> None:
        self._blobs = blobs
        self._clock = clock
        self._ids: dict[str, int] = {}

    def write(self, db: sqlite3.Connection, batches: Sequence[Append]) -> list[Mark | WorldFault]:
        """Write what may be written. A stale batch is answered and leaves no trace; any other error raises."""
        answers: list[Mark | WorldFault] = []
        events: list[Value] = []
        archive: list[Value] = []
        for batch in batches:
            stream = self._fence(db, batch)
            if isinstance(stream, WorldFault):
                answers.append(stream)
                continue
            first = (stream << 40) + batch.expected_version + 1
            for row, event in enumerate(batch.events, first):
                events += (row, event.at, event.type, event.data)
            for moved in batch.archive:
                archive += (stream, moved.kind, moved.key, moved.owner, moved.version, moved.data)
            self._take(db, stream, batch)
            self._refer(db, stream, batch)
            version = batch.expected_version + len(batch.events)
            answers.append(Mark(stream, version, batch.epoch))
        insert(db, EVENTS, 4, events)
        insert(db, ARCHIVE, 6, archive)
        return answers

    def committed(self, batch: Append) -> None:
        """The events that name these blobs are durable now."""
        for digest in batch.blobs:
            self._blobs.unnamed.pop(digest, None)

    def forget(self, stream: str) -> None:
        """The stream's id may not be what it was: look it up again."""
        self._ids.pop(stream, None)

    def _fence(self, db: sqlite3.Connection, batch: Append) -> int | WorldFault:
        stream = self._id(db, batch.stream)
        event_bytes = sum([len(event.data) for event in batch.events])
        archive_bytes = sum([len(row.data) for row in batch.archive])
        head = (stream, batch.expected_version, batch.epoch)
        written = db.execute(FENCE, (len(batch.events), batch.batch, event_bytes, archive_bytes, *head))
        if written.rowcount == 1:
            return stream
        self.forget(batch.stream)
        return refusal(db, batch)

    def _id(self, db: sqlite3.Connection, stream: str) -> int:
        known = self._ids.get(stream)
        if known is None:
            row = db.execute("SELECT id FROM streams WHERE stream = ?", (stream,)).fetchone()
            known = self._ids[stream] = 0 if row is None else int(row[0])
        return known

    def _take(self, db: sqlite3.Connection, stream: int, batch: Append) -> None:
        if not batch.taken:
            return
        now = int(self._clock() * 1000)
        for taken in batch.taken:
            if db.execute(TAKE, (taken.outcome, now, stream, taken.intent_id)).rowcount != 1:
                raise Bug(
                    f"Batch {batch.batch!r} takes the intent {taken.intent_id!r}, which does not wait in the inbox."
                )

    def _refer(self, db: sqlite3.Connection, stream: int, batch: Append) -> None:
        if not batch.blobs:
            return
        values: list[Value] = []
        for digest in dict.fromkeys(batch.blobs):
            size = self._blobs.size(digest)
            if size is None:
                raise Bug(f"Batch {batch.batch!r} names the blob {digest!r}, which was never put.")
            values += (digest, stream, size)
        added = 0
        for start in range(0, len(values), 3 * ROWS):
            part = values[start : start + 3 * ROWS]
            refer = statement("INSERT OR IGNORE INTO blob_refs (digest, stream_id, size) VALUES ", 3, len(part) // 3)
            added += sum(row[0] for row in db.execute(f"{refer} RETURNING size", part).fetchall())
        db.execute("UPDATE streams SET blob_bytes = blob_bytes + ? WHERE id = ?", (added, stream))


def refusal(db: sqlite3.Connection, batch: Append) -> WorldFault:
    """Why the fence let nothing through."""
    row = db.execute("SELECT version, epoch, owner FROM streams WHERE stream = ?", (batch.stream,)).fetchone()
    if row is None:
        return StoreFault(f"There is no stream {batch.stream!r}. `greenroom tasks` lists what there is.")
    version, epoch, owner = row
    if epoch == batch.epoch and owner:
        return StaleOwner(
            f"Stream {batch.stream!r} is at version {version}, not {batch.expected_version}: "
            "another append was quicker. Nothing was written; read the stream again."
        )
    now = f"{owner!r} with epoch {epoch}" if owner else f"nobody since epoch {epoch} was released"
    return StaleOwner(
        f"Epoch {batch.epoch} no longer owns stream {batch.stream!r}: {now} does. Nothing was written; stop here."
    )
