"""The writer thread: it groups waiting appends and lease changes into one transaction, so that they share one fsync.

The number of statements does not grow with the number of events. During each statement, the event loop can take the
interpreter lock and keep it for 5 ms. Beside a busy loop, 600 rows took 4.8 s with `executemany`, but 40 ms in a few
statements.

One faulty append does not affect the rest of its group. A stale append changes nothing. After any other error, the
group is written again with a savepoint around each append.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Final, Generic, Literal, TypeVar

from greenroom.adapters.storage.sqlite.faults import (
    DAMAGE_CODES,
    is_database_error,
    make_missing_fault,
    read_code,
    translate_commit,
    translate_error,
    translate_os,
)
from greenroom.adapters.storage.sqlite.files import BlobFiles
from greenroom.adapters.storage.sqlite.store_folder import CommitMark, SideRecord
from greenroom.adapters.storage.watch import StreamWatch
from greenroom.core.base.errors import Bug, StaleOwner, StoreFault, WorldFault, translate
from greenroom.core.ports.log import EventBatch

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
ChangeResult = tuple[T, CommitMark | None]
"""The result of a change, and a mark of its commit if the commit can be recognised later."""

ChangeWork = Callable[[sqlite3.Connection], ChangeResult[T]]
ChangeMode = Literal["transaction", "grouped", "bare"]
"""A change in its own transaction, in one with others that wait, or outside a transaction."""


class PendingWrite(Generic[T_co]):
    """A queued change. `stream` names the listeners to wake afterwards, `mark` identifies its commit, and `mode` says
    whether it shares a transaction."""

    __slots__ = ("_error", "_future", "mark", "mode", "stream")

    def __init__(self, future: asyncio.Future[T_co], stream: str | None, mode: ChangeMode) -> None:
        self.stream = stream
        self.mode = mode
        self.mark: CommitMark | None = None
        self._future = future
        self._error: Exception | None = None

    def result(self) -> T_co:
        """Return the result for the caller after success."""
        raise NotImplementedError

    @property
    def has_failed(self) -> bool:
        """Whether it failed. The transaction of its group may still succeed."""
        return self._error is not None

    def fail(self, error: Exception) -> None:
        """Record the error, in the writer thread."""
        self.mark = None
        self._error = error

    def settle(self) -> None:
        """Resolve the caller's future, in the event loop, unless it was cancelled."""
        if self._future.done():
            return
        if self._error is not None:
            self._future.set_exception(self._error)
        else:
            self._future.set_result(self.result())


class PendingChange(PendingWrite[T_co]):
    """Any change except an append. `undo` reverts side effects outside the database."""

    __slots__ = ("_result", "_undo", "_work")

    def __init__(
        self,
        future: asyncio.Future[T_co],
        work: ChangeWork[T_co],
        *,
        stream: str | None,
        mode: ChangeMode,
        undo: Callable[[], None] | None,
    ) -> None:
        super().__init__(future, stream, mode)
        self._undo = undo
        self._work = work
        self._result: T_co

    def run(self, db: sqlite3.Connection) -> None:
        """Run the change, in the writer thread."""
        self._result, self.mark = self._work(db)

    def result(self) -> T_co:
        return self._result

    def fail(self, error: Exception) -> None:
        super().fail(error)
        if self._undo is not None:
            self._undo()


class PendingAppend(PendingWrite[int]):
    """An append that waits for the next group commit."""

    __slots__ = ("batch",)

    def __init__(self, future: asyncio.Future[int], batch: EventBatch) -> None:
        super().__init__(future, batch.stream, "grouped")
        self.batch = batch

    def result(self) -> int:
        assert self.mark is not None
        return self.mark.version


class ErrorTrap:
    """Catches any exception in its block, so that callers get it and the thread continues."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> ErrorTrap:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, Exception):
            self.error = error
            return True
        return False


SqlValue = str | int | bytes

MAX_ROWS_PER_STATEMENT: Final = 250
"""Rows per statement: at most 1,500 variables, where SQLite allows 32,766."""

INSERT_EVENTS: Final = "INSERT INTO events (id, at, type, data, ends) VALUES "
INSERT_ARCHIVE: Final = "INSERT INTO archive (id, kind, key, owner, data) VALUES "

# This statement decides who may write: a stale epoch or version, no owner and no stream all change 0 rows.
UPDATE_FENCED: Final = """
UPDATE streams SET version = version + ?, batch = ?, batch_epoch = epoch,
    event_bytes = event_bytes + ?, archive_bytes = archive_bytes + ?
WHERE id = ? AND version = ? AND epoch = ? AND owner <> ''
"""
UPDATE_TAKEN: Final = """
UPDATE inbox SET outcome = ?, answered_at = ? WHERE stream_id = ? AND intent_id = ? AND outcome IS NULL
"""

UPSERT_QUESTIONS: Final = "INSERT OR REPLACE INTO meta (key, value) VALUES ('questions:' || ?, ?)"


@lru_cache(maxsize=4 * MAX_ROWS_PER_STATEMENT)
def build_insert(head: str, width: int, rows: int) -> str:
    """Return the statement that inserts this many rows; the connection caches it as prepared."""
    return head + ", ".join(["(" + ", ".join("?" * width) + ")"] * rows)


def insert_rows(db: sqlite3.Connection, head: str, width: int, values: Sequence[SqlValue]) -> None:
    """Insert rows, given as one flat list of values."""
    if len(values) % width:
        raise Bug(f"{len(values)} values are not a multiple of {width}: {head!r}.")
    for start in range(0, len(values), width * MAX_ROWS_PER_STATEMENT):
        part = values[start : start + width * MAX_ROWS_PER_STATEMENT]
        db.execute(build_insert(head, width, len(part) // width), part)


class Appender:
    """Writes batches inside a transaction that the caller begins and commits."""

    def __init__(self, blobs: BlobFiles, clock: Callable[[], float]) -> None:
        self._blobs = blobs
        self._clock = clock
        self._ids: dict[str, int] = {}

    def write(self, db: sqlite3.Connection, appends: Sequence[PendingAppend]) -> None:
        """Write all valid batches. A stale batch fails without a trace; any other error is raised."""
        events: list[SqlValue] = []
        archive: list[SqlValue] = []
        for append in appends:
            batch = append.batch
            stream = self._ids.get(batch.stream) or self._find_id(db, batch.stream)
            written = self._try_write(db, append, stream, events, archive)
            if not written and stream != (newer := self._find_id(db, batch.stream)):
                # The stream was deleted and created again since its id was cached.
                written = self._try_write(db, append, newer, events, archive)
            if not written:
                append.fail(make_refusal(db, batch))
        if events:
            insert_rows(db, INSERT_EVENTS, 5, events)
        if archive:
            insert_rows(db, INSERT_ARCHIVE, 5, archive)

    def _try_write(
        self,
        db: sqlite3.Connection,
        append: PendingAppend,
        stream: int,
        events: list[SqlValue],
        archive: list[SqlValue],
    ) -> bool:
        """Check the batch against the fence, and add its rows to those of the group. Return whether it passed."""
        batch = append.batch
        row = (stream << 40) + batch.expected_version
        event_bytes = archive_bytes = 0
        fresh: list[SqlValue] = []
        for event in batch.events:
            row += 1
            fresh += (row, event.at, event.type, event.data, event.ends)
            event_bytes += len(event.data)
        if fresh:
            fresh[-1] = True
        archived: list[SqlValue] = []
        for entry in batch.archive:
            archived += ((stream << 40) + entry.version, entry.kind, entry.key, entry.owner, entry.data)
            archive_bytes += len(entry.data)
        head = (stream, batch.expected_version, batch.epoch)
        if db.execute(UPDATE_FENCED, (len(batch.events), batch.batch, event_bytes, archive_bytes, *head)).rowcount != 1:
            return False
        if batch.taken:
            self._answer_intents(db, stream, batch)
        if batch.blobs:
            self._reference_blobs(db, stream, batch)
        if batch.questions is not None:
            db.execute(UPSERT_QUESTIONS, (stream, batch.questions))
        events += fresh
        archive += archived
        append.mark = CommitMark(stream, batch.expected_version + len(batch.events), batch.epoch)
        return True

    def mark_committed(self, batch: EventBatch) -> None:
        """Stop tracking the blobs of a batch that is durable now."""
        for digest in batch.blobs:
            self._blobs.mark_referenced(digest)

    def _find_id(self, db: sqlite3.Connection, stream: str) -> int:
        """Return the id of a stream; 0 if there is none."""
        row = db.execute("SELECT id FROM streams WHERE stream = ?", (stream,)).fetchone()
        self._ids[stream] = 0 if row is None else int(row[0])
        return self._ids[stream]

    def _answer_intents(self, db: sqlite3.Connection, stream: int, batch: EventBatch) -> None:
        now = int(self._clock() * 1000)
        for taken in batch.taken:
            if db.execute(UPDATE_TAKEN, (taken.outcome, now, stream, taken.intent_id)).rowcount != 1:
                raise Bug(
                    f"Batch {batch.batch!r} takes the intent {taken.intent_id!r}, which is not waiting in the inbox."
                )

    def _reference_blobs(self, db: sqlite3.Connection, stream: int, batch: EventBatch) -> None:
        values: list[SqlValue] = []
        for digest in dict.fromkeys(batch.blobs):
            size = self._blobs.find_size(digest)
            if size is None:
                raise Bug(f"Batch {batch.batch!r} names the blob {digest!r}, which was not stored, or too long ago.")
            values += (digest, stream, size)
        added = 0
        for start in range(0, len(values), 3 * MAX_ROWS_PER_STATEMENT):
            part = values[start : start + 3 * MAX_ROWS_PER_STATEMENT]
            insert = build_insert(
                "INSERT OR IGNORE INTO blob_refs (digest, stream_id, size) VALUES ", 3, len(part) // 3
            )
            added += sum(row[0] for row in db.execute(f"{insert} RETURNING size", part).fetchall())
        db.execute("UPDATE streams SET blob_bytes = blob_bytes + ? WHERE id = ?", (added, stream))


def make_refusal(db: sqlite3.Connection, batch: EventBatch) -> WorldFault:
    """Return the fault for a batch that the fence refused."""
    row = db.execute("SELECT version, epoch, owner FROM streams WHERE stream = ?", (batch.stream,)).fetchone()
    if row is None:
        return make_missing_fault(batch.stream)
    version, epoch, owner = row
    if epoch == batch.epoch and owner:
        return StaleOwner(
            "storage.version_conflict",
            stream=batch.stream,
            version=version,
            expected_version=batch.expected_version,
        )
    now = translate("storage.owner_with_epoch" if owner else "storage.no_owner_since", owner=owner, epoch=epoch)
    return StaleOwner("storage.epoch_lost", epoch=batch.epoch, stream=batch.stream, now=now)


CHECKPOINT_PAGES: Final = 1000
"""Estimated number of WAL pages after which they are copied into the database."""


class Committer:
    """The single writing connection."""

    def __init__(
        self,
        path: Path,
        db: sqlite3.Connection,
        *,
        connect: Callable[[], sqlite3.Connection],
        side: SideRecord,
        appender: Appender,
    ) -> None:
        self.commits = 0
        self.damage: StoreFault | None = None
        self._path = path
        self._db = db
        self._connect = connect
        self._side_record = side
        self._appender = appender
        self._pages = 0
        self._newest: CommitMark | None = None
        place = path.stat()
        self._file = (place.st_dev, place.st_ino)

    def write(self, group: Sequence[QueuedWrite]) -> None:
        """Write a group in one transaction; each write gets its own result.

        Appends come first: a lease change of the same stream was submitted after them, or was not yet answered.
        """
        self._check_same_file()
        appends = [write for write in group if isinstance(write, PendingAppend)]
        self._db.execute("BEGIN IMMEDIATE")
        if len(group) == 1:
            self._appender.write(self._db, appends)
        else:
            self._write_group(appends)
        for change in group:
            if isinstance(change, PendingChange):
                self._write_alone(change)
        if all(write.has_failed for write in group):
            self._db.execute("ROLLBACK")
            return
        self._commit(next((write.mark for write in reversed(group) if write.mark is not None), None))
        for append in appends:
            if append.mark is not None:
                self._pages += 3 + len(append.batch.events) // 8 + len(append.batch.archive)
                self._appender.mark_committed(append.batch)

    def _check_same_file(self) -> None:
        """Raise `StoreFault` if the file was deleted or replaced: writes to it would be lost silently."""
        try:
            place = self._path.stat()
        except FileNotFoundError:
            place = None
        if place is None or (place.st_dev, place.st_ino) != self._file:
            raise StoreFault("storage.database_replaced", path=self._path)

    def run(self, change: PendingChange[object]) -> None:
        """Run one change without others."""
        if change.mode == "bare":
            change.run(self._db)
            return
        self._db.execute("BEGIN IMMEDIATE")
        change.run(self._db)
        self._commit(change.mark)

    def recover(self) -> None:
        """Roll back an open transaction; if that fails, open a new connection."""
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            self.close()
            with suppress(sqlite3.Error):  # until it works again, every call raises the fault
                self._db = self._connect()

    def translate_error(self, error: Exception) -> Exception:
        if isinstance(error, sqlite3.IntegrityError):
            return Bug(f"A batch contradicts the data in {self._path}: {error}.")
        if isinstance(error, sqlite3.Error):
            fault = translate_error(error, self._path)
            if isinstance(fault, StoreFault) and read_code(error) in DAMAGE_CODES:
                self.damage = fault
            return fault
        return translate_os(error, self._path) if isinstance(error, OSError) else error

    def tidy(self) -> None:
        """Do the deferred work: save the newest commit in the side record, and checkpoint the WAL occasionally."""
        if self._newest is not None:
            self._side_record.write(self._newest)
            self._newest = None
        if self._pages >= CHECKPOINT_PAGES:
            self._pages = 0
            with suppress(sqlite3.Error):  # harmless: the WAL is durable
                self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._db.close()

    def _write_group(self, appends: Sequence[PendingAppend]) -> None:
        with ErrorTrap() as caught:
            self._appender.write(self._db, appends)
        if caught.error is None:
            return
        if is_database_error(caught.error):
            raise caught.error
        self._db.execute("ROLLBACK")
        self._db.execute("BEGIN IMMEDIATE")
        for append in appends:
            self._write_alone(append)

    def _write_alone(self, write: QueuedWrite) -> None:
        """Write one part of a group inside a savepoint."""
        self._db.execute("SAVEPOINT alone")
        with ErrorTrap() as caught:
            if isinstance(write, PendingAppend):
                self._appender.write(self._db, (write,))
            else:
                write.run(self._db)
        if caught.error is not None:
            if is_database_error(caught.error):
                raise caught.error
            self._db.execute("ROLLBACK TO alone")
            write.fail(self.translate_error(caught.error))
        self._db.execute("RELEASE alone")

    def _commit(self, mark: CommitMark | None) -> None:
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise translate_commit(error, self._path) from error
        self.commits += 1
        self._newest = mark or self._newest


QueuedWrite = PendingAppend | PendingChange[object]

MAX_GROUP_SIZE: Final = 1024

IDLE_S: Final = 0.01
"""Idle time in seconds after which the writer does its deferred work."""

TIDY_INTERVAL_S: Final = 0.01
"""Interval in seconds of the deferred work while the writer is busy."""


class Writer:
    """One thread, one connection, one queue. Call its public methods from the event loop."""

    def __init__(self, path: Path, committer: Committer, watch: StreamWatch) -> None:
        self._path = path
        self._committer = committer
        self._watch = watch
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._queue: queue.SimpleQueue[QueuedWrite | None] = queue.SimpleQueue()
        self._next: deque[QueuedWrite | None] = deque()
        self._closed = False
        self._tidied_at = 0.0
        self._thread = threading.Thread(target=self._run, name="greenroom-writer", daemon=True)
        self._thread.start()

    def append(self, batch: EventBatch) -> asyncio.Future[int]:
        """Queue a batch for the next group commit; the future returns the new version."""
        future: asyncio.Future[int] = self._loop.create_future()
        self._submit(PendingAppend(future, batch))
        return future

    def change(
        self,
        work: ChangeWork[T],
        *,
        stream: str | None = None,
        mode: ChangeMode = "transaction",
        undo: Callable[[], None] | None = None,
    ) -> asyncio.Future[T]:
        """Run a change in the writer thread. Call `undo` if it fails."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._submit(PendingChange(future, work, stream=stream, mode=mode, undo=undo))
        return future

    async def close(self) -> None:
        """Finish the queued writes, then end the thread."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.shield(self._ended)
        self._thread.join()

    def _submit(self, write: PendingAppend | PendingChange[T]) -> None:
        if self._closed:
            raise StoreFault("storage.database_closed", path=self._path)
        self._queue.put(write)

    def _settle(self, writes: Sequence[PendingWrite[object]]) -> None:
        for write in writes:
            write.settle()
            if write.stream is not None:
                self._watch.wake(write.stream)

    # ------------------------------------------------------------------------------------ in the thread

    def _run(self) -> None:
        try:
            while group := self._gather():
                with ErrorTrap() as caught:
                    self._serve(group)
                if caught.error is not None:
                    self._fail(group, caught.error)
                self._deliver(group)
        finally:
            self._end()

    def _serve(self, group: Sequence[QueuedWrite]) -> None:
        if self._committer.damage is not None:
            raise self._committer.damage  # nothing is written to a damaged database
        if len(group) == 1 and isinstance(group[0], PendingChange):
            self._committer.run(group[0])
        else:
            self._committer.write(group)

    def _fail(self, writes: Sequence[PendingWrite[object]], error: Exception) -> None:
        self._committer.recover()
        for write in writes:
            write.fail(self._committer.translate_error(error))

    def _gather(self) -> Sequence[QueuedWrite]:
        """Return the writes of the next transaction; none when the thread should end."""
        first = self._next.popleft() if self._next else self._wait_for_write()
        if first is None:
            return ()
        group = [first]
        while first.mode == "grouped" and not self._queue.empty() and len(group) < MAX_GROUP_SIZE:
            write = self._queue.get()
            if write is None or write.mode != "grouped":
                self._next.append(write)
                break
            group.append(write)
        return group

    def _wait_for_write(self) -> QueuedWrite | None:
        """Wait for the next write. Do the deferred work when idle, and at intervals when busy."""
        if time.monotonic() < self._tidied_at + TIDY_INTERVAL_S:
            with suppress(queue.Empty):
                return self._queue.get(timeout=IDLE_S)
        self._committer.tidy()
        self._tidied_at = time.monotonic()
        return self._queue.get()

    def _deliver(self, writes: Sequence[PendingWrite[object]]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, writes)
        except RuntimeError:
            return  # the loop is closed, so no caller waits

    def _end(self) -> None:
        """Fail everything that is left in the queue, so that no caller waits for an ended thread."""
        self._closed = True
        while not self._queue.empty():
            self._next.append(self._queue.get())
        unwritten = [write for write in self._next if write is not None]
        for write in unwritten:
            write.fail(StoreFault("storage.database_closed", path=self._path))
        self._deliver(unwritten)
        self._committer.tidy()
        self._committer.close()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended.set_result, None)
