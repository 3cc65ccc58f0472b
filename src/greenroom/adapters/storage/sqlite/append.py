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
from greenroom.adapters.storage.sqlite.tickets import Appending
from greenroom.core.base.errors import Bug, StaleOwner, StoreFault, WorldFault
from greenroom.core.ports.log import Append

Value = str | int | bytes

ROWS: Final = 250
"""Rows per statement: 1,500 variables at most, where SQLite allows 32,766."""

EVENTS: Final = "INSERT INTO events (id, at, type, data, ends) VALUES "
ARCHIVE: Final = "INSERT INTO archive (id, kind, key, owner, data) VALUES "

# The one statement that decides who may write: stale epoch, stale version, no owner, no stream all change 0 rows.
FENCE: Final = """
UPDATE streams SET version = version + ?, batch = ?, batch_epoch = epoch,
    event_bytes = event_bytes + ?, archive_bytes = archive_bytes + ?
WHERE id = ? AND version = ? AND epoch = ? AND owner <> ''
"""
TAKE: Final = """
UPDATE inbox SET outcome = ?, answered_at = ? WHERE stream_id = ? AND intent_id = ? AND outcome IS NULL
"""

QUESTIONS: Final = "INSERT OR REPLACE INTO meta (key, value) VALUES ('questions:' || ?, ?)"


@lru_cache(maxsize=4 * ROWS)
def statement(head: str, width: int, rows: int) -> str:
    """The text that inserts this many rows; the connection keeps it prepared."""
    return head + ", ".join(["(" + ", ".join("?" * width) + ")"] * rows)


def insert(db: sqlite3.Connection, head: str, width: int, values: Sequence[Value]) -> None:
    """Insert rows, given one after the other in one flat list."""
    if len(values) % width:
        raise Bug(f"{len(values)} values are no rows of {width}: {head!r}.")
    for start in range(0, len(values), width * ROWS):
        part = values[start : start + width * ROWS]
        db.execute(statement(head, width, len(part) // width), part)


class Appender:
    """Writes batches inside a transaction that somebody else begins and commits."""

    def __init__(self, blobs: BlobFiles, clock: Callable[[], float]) -> None:
        self._blobs = blobs
        self._clock = clock
        self._ids: dict[str, int] = {}

    def write(self, db: sqlite3.Connection, jobs: Sequence[Appending]) -> None:
        """Write what may be written. A stale batch is answered and leaves no trace; any other error raises."""
        events: list[Value] = []
        archive: list[Value] = []
        for job in jobs:
            batch = job.batch
            stream = self._ids.get(batch.stream) or self._id(db, batch.stream)
            written = self._write(db, job, stream, events, archive)
            if not written and stream != (newer := self._id(db, batch.stream)):
                # The name was forgotten and given again since we looked its number up.
                written = self._write(db, job, newer, events, archive)
            if not written:
                job.fail(refusal(db, batch))
        if events:
            insert(db, EVENTS, 5, events)
        if archive:
            insert(db, ARCHIVE, 5, archive)

    def _write(
        self, db: sqlite3.Connection, job: Appending, stream: int, events: list[Value], archive: list[Value]
    ) -> bool:
        """Let the batch through the fence, and add its rows to those that all batches of the group write together."""
        batch = job.batch
        row = (stream << 40) + batch.expected_version
        event_bytes = archive_bytes = 0
        fresh: list[Value] = []
        for event in batch.events:
            row += 1
            fresh += (row, *event)
            event_bytes += len(event.data)
        if fresh:
            fresh[-1] = True
        moved: list[Value] = []
        for kind, key, owner, version, data in batch.archive:
            moved += ((stream << 40) + version, kind, key, owner, data)
            archive_bytes += len(data)
        head = (stream, batch.expected_version, batch.epoch)
        if db.execute(FENCE, (len(batch.events), batch.batch, event_bytes, archive_bytes, *head)).rowcount != 1:
            return False
        if batch.taken:
            self._take(db, stream, batch)
        if batch.blobs:
            self._refer(db, stream, batch)
        if batch.questions is not None:
            db.execute(QUESTIONS, (stream, batch.questions))
        events += fresh
        archive += moved
        job.mark = Mark(stream, batch.expected_version + len(batch.events), batch.epoch)
        return True

    def committed(self, batch: Append) -> None:
        """The events that name these blobs are durable now."""
        for digest in batch.blobs:
            self._blobs.named(digest)

    def _id(self, db: sqlite3.Connection, stream: str) -> int:
        """The stream's number; 0, which none has, when there is no such stream."""
        row = db.execute("SELECT id FROM streams WHERE stream = ?", (stream,)).fetchone()
        self._ids[stream] = 0 if row is None else int(row[0])
        return self._ids[stream]

    def _take(self, db: sqlite3.Connection, stream: int, batch: Append) -> None:
        now = int(self._clock() * 1000)
        for taken in batch.taken:
            if db.execute(TAKE, (taken.outcome, now, stream, taken.intent_id)).rowcount != 1:
                raise Bug(
                    f"Batch {batch.batch!r} takes the intent {taken.intent_id!r}, which does not wait in the inbox."
                )

    def _refer(self, db: sqlite3.Connection, stream: int, batch: Append) -> None:
        values: list[Value] = []
        for digest in dict.fromkeys(batch.blobs):
            size = self._blobs.size(digest)
            if size is None:
                raise Bug(f"Batch {batch.batch!r} names the blob {digest!r}, which was never put, or not lately.")
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
