"""The writer thread: takes all appends that wait into one group, so that one fsync serves them all.

The number of statements does not grow with the number of events. Each statement lets the event loop take the
interpreter, and under load it comes back 5 ms later: 600 rows by `executemany` took 4.8 s beside a busy loop, as rows
of a few statements 40 ms.

What one append does wrong does not hurt the others of its group: a stale one changes nothing, and when anything else
goes wrong the group is written again with a savepoint around each.
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

from greenroom.adapters.storage.sqlite.faults import concerns_all, missing, translate, translate_commit, translate_os
from greenroom.adapters.storage.sqlite.files import BlobFiles
from greenroom.adapters.storage.sqlite.opening import Mark, SideRecord
from greenroom.adapters.storage.watch import Watch
from greenroom.core.base.errors import Bug, StaleOwner, StoreFault, WorldFault
from greenroom.core.ports.log import Append

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Answer = tuple[T, Mark | None]
"""What a change answers, and where its commit shows in the database, if that proves anything."""

Work = Callable[[sqlite3.Connection], Answer[T]]
Mode = Literal["transaction", "bare"]


class Ticket(Generic[T_co]):
    """A caller's wish. `stream` is whose listeners to wake when it is done, `mark` where its commit shows."""

    __slots__ = ("_error", "_future", "mark", "stream")

    def __init__(self, future: asyncio.Future[T_co], stream: str | None) -> None:
        self.stream = stream
        self.mark: Mark | None = None
        self._future = future
        self._error: Exception | None = None

    def result(self) -> T_co:
        """What the caller is told when it was done."""
        raise NotImplementedError

    def fail(self, error: Exception) -> None:
        """Note, in the writer thread, that it did not work."""
        self.mark = None
        self._error = error

    def settle(self) -> None:
        """Tell the caller, in the event loop, unless it went away."""
        if self._future.done():
            return
        if self._error is not None:
            self._future.set_exception(self._error)
        else:
            self._future.set_result(self.result())


class Task(Ticket[T_co]):
    """Any change but an append, in a transaction of its own; `bare` is for what SQLite does outside of one.

    `undo` takes back what it did outside the database.
    """

    __slots__ = ("_result", "_undo", "_work", "mode")

    def __init__(
        self,
        future: asyncio.Future[T_co],
        work: Work[T_co],
        *,
        stream: str | None,
        mode: Mode,
        undo: Callable[[], None] | None,
    ) -> None:
        super().__init__(future, stream)
        self.mode = mode
        self._undo = undo
        self._work = work
        self._result: T_co

    def run(self, db: sqlite3.Connection) -> None:
        """Do it, in the writer thread."""
        self._result, self.mark = self._work(db)

    def result(self) -> T_co:
        return self._result

    def fail(self, error: Exception) -> None:
        super().fail(error)
        if self._undo is not None:
            self._undo()


class Appending(Ticket[int]):
    """An append that waits for the next group commit."""

    __slots__ = ("batch",)

    def __init__(self, future: asyncio.Future[int], batch: Append) -> None:
        super().__init__(future, batch.stream)
        self.batch = batch

    def result(self) -> int:
        assert self.mark is not None
        return self.mark.version


class Caught:
    """Keeps whatever goes wrong inside, so that it reaches those who wait and the thread lives on."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> Caught:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, Exception):
            self.error = error
            return True
        return False


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
        return missing(batch.stream)
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


CHECKPOINT: Final = 1000
"""WAL pages (estimated) after which they are copied into the database."""


class Committer:
    """The one connection that writes."""

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
        self._path = path
        self._db = db
        self._connect = connect
        self._side = side
        self._appender = appender
        self._pages = 0
        self._newest: Mark | None = None
        place = path.stat()
        self._file = (place.st_dev, place.st_ino)

    def append(self, jobs: Sequence[Appending]) -> None:
        """Write them all in one transaction; each gets its own answer."""
        self._same_place()
        self._db.execute("BEGIN IMMEDIATE")
        if len(jobs) == 1:
            self._appender.write(self._db, jobs)
        else:
            self._write_group(jobs)
        newest = None
        for job in jobs:
            if job.mark is not None:
                newest = job.mark
                self._pages += 3 + len(job.batch.events) // 8 + len(job.batch.archive)
        if newest is None:
            self._db.execute("ROLLBACK")
            return
        self._commit(newest)
        for job in jobs:
            if job.batch.blobs and job.mark:
                self._appender.committed(job.batch)

    def _same_place(self) -> None:
        """Writing on into a file that somebody has deleted or replaced would lose everything without a word."""
        try:
            place = self._path.stat()
        except FileNotFoundError:
            place = None
        if place is None or (place.st_dev, place.st_ino) != self._file:
            raise StoreFault(f"{self._path} was deleted or replaced while it was open. Nothing more is written to it.")

    def run(self, job: Task[object]) -> None:
        """Do one other change."""
        if job.mode == "bare":
            job.run(self._db)
            return
        self._db.execute("BEGIN IMMEDIATE")
        job.run(self._db)
        self._commit(job.mark)

    def recover(self) -> None:
        """Leave no transaction open; when even that fails, start over with a new connection."""
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            self.close()
            with suppress(sqlite3.Error):  # then every call says what is wrong, until it works again
                self._db = self._connect()

    def translated(self, error: Exception) -> Exception:
        """The error as callers shall see it."""
        if isinstance(error, sqlite3.IntegrityError):
            return Bug(f"A batch does not fit what {self._path} holds: {error}.")
        if isinstance(error, sqlite3.Error):
            return translate(error, self._path)
        return translate_os(error, self._path) if isinstance(error, OSError) else error

    def tidy(self) -> None:
        """What nobody waits for: note the newest commit beside the database, copy the WAL into it once in a while."""
        if self._newest is not None:
            self._side.write(self._newest)
            self._newest = None
        if self._pages >= CHECKPOINT:
            self._pages = 0
            with suppress(sqlite3.Error):  # costs nothing: all of it is durable where it is
                self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Let the connection go."""
        with suppress(sqlite3.Error):
            self._db.close()

    def _write_group(self, jobs: Sequence[Appending]) -> None:
        with Caught() as caught:
            self._appender.write(self._db, jobs)
        if caught.error is None:
            return
        if concerns_all(caught.error):
            raise caught.error
        self._db.execute("ROLLBACK")
        self._db.execute("BEGIN IMMEDIATE")
        for job in jobs:
            self._write_alone(job)

    def _write_alone(self, job: Appending) -> None:
        """One of the group is at fault: a savepoint around each."""
        self._db.execute("SAVEPOINT batch")
        with Caught() as caught:
            self._appender.write(self._db, (job,))
        if caught.error is not None:
            if concerns_all(caught.error):
                raise caught.error
            self._db.execute("ROLLBACK TO batch")
            job.fail(self.translated(caught.error))
        self._db.execute("RELEASE batch")

    def _commit(self, mark: Mark | None) -> None:
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise translate_commit(error, self._path) from error
        self.commits += 1
        self._newest = mark or self._newest


Job = Appending | Task[object]

GROUP: Final = 1024

LULL: Final = 0.01
"""Seconds without work after which the writer tidies up."""

TIDY_EVERY: Final = 0.01
"""Seconds after which it does so while it is busy."""


class Writer:
    """One thread, one connection, one queue. Everything public is called from the event loop."""

    def __init__(self, path: Path, committer: Committer, watch: Watch) -> None:
        self._path = path
        self._committer = committer
        self._watch = watch
        self._loop = asyncio.get_running_loop()
        self._gone = self._loop.create_future()
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._next: deque[Job | None] = deque()
        self._closed = False
        self._tidied = 0.0
        self._thread = threading.Thread(target=self._run, name="greenroom-writer", daemon=True)
        self._thread.start()

    def append(self, batch: Append) -> asyncio.Future[int]:
        """Write the batch with whatever else waits; answers the new version."""
        future: asyncio.Future[int] = self._loop.create_future()
        self._submit(Appending(future, batch))
        return future

    def change(
        self,
        work: Work[T],
        *,
        stream: str | None = None,
        mode: Mode = "transaction",
        undo: Callable[[], None] | None = None,
    ) -> asyncio.Future[T]:
        """Run this in the writer thread in a transaction of its own; `undo` when that fails."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._submit(Task(future, work, stream=stream, mode=mode, undo=undo))
        return future

    async def close(self) -> None:
        """Write what waits, then end the thread."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.shield(self._gone)
        self._thread.join()

    def _submit(self, job: Appending | Task[T]) -> None:
        if self._closed:
            raise StoreFault(f"{self._path} was closed. Open it again.")
        self._queue.put(job)

    def _settle(self, jobs: Sequence[Ticket[object]]) -> None:
        for job in jobs:
            job.settle()
            if job.stream is not None:
                self._watch.wake(job.stream)

    # ------------------------------------------------------------------------------------ in the thread

    def _run(self) -> None:
        try:
            while (work := self._gather()) is not None:
                jobs = work if isinstance(work, list) else (work,)
                with Caught() as caught:
                    self._serve(work)
                if caught.error is not None:
                    self._fail(jobs, caught.error)
                self._deliver(jobs)
        finally:
            self._end()

    def _serve(self, work: list[Appending] | Task[object]) -> None:
        if isinstance(work, Task):
            self._committer.run(work)
        else:
            self._committer.append(work)

    def _fail(self, jobs: Sequence[Ticket[object]], error: Exception) -> None:
        self._committer.recover()
        for job in jobs:
            job.fail(self._committer.translated(error))

    def _gather(self) -> list[Appending] | Task[object] | None:
        """All appends that wait, or one other change; None when it is time to end."""
        first = self._next.popleft() if self._next else self._first()
        if not isinstance(first, Appending):
            return first
        group = [first]
        while not self._queue.empty() and len(group) < GROUP:
            job = self._queue.get()
            if not isinstance(job, Appending):
                self._next.append(job)
                break
            group.append(job)
        return group

    def _first(self) -> Job | None:
        """What comes next. What can wait is done when nothing comes at once, and now and then if it never stops."""
        if time.monotonic() < self._tidied + TIDY_EVERY:
            with suppress(queue.Empty):
                return self._queue.get(timeout=LULL)
        self._committer.tidy()
        self._tidied = time.monotonic()
        return self._queue.get()

    def _deliver(self, jobs: Sequence[Ticket[object]]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, jobs)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    def _end(self) -> None:
        """Answer whatever is left, so that nobody waits for a thread that is gone."""
        self._closed = True
        while not self._queue.empty():
            self._next.append(self._queue.get())
        left = [job for job in self._next if job is not None]
        for job in left:
            job.fail(StoreFault(f"{self._path} was closed. Open it again."))
        self._deliver(left)
        self._committer.tidy()
        self._committer.close()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._gone.set_result, None)
