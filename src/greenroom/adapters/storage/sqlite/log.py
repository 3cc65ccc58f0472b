"""The log and its blobs in a folder that several processes share: `greenroom.db` and the files beside it."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from greenroom.adapters.storage.database import FrozenConnection
from greenroom.adapters.storage.sqlite import statements
from greenroom.adapters.storage.sqlite.faults import translate_errors
from greenroom.adapters.storage.sqlite.files import BlobFiles, LeaseFiles
from greenroom.adapters.storage.sqlite.store_folder import Access, StoreFolder
from greenroom.adapters.storage.sqlite.writer import Appender, ChangeMode, ChangeResult, ChangeWork, Committer, Writer
from greenroom.adapters.storage.watch import StreamWatch, make_inbox_key
from greenroom.core.base.errors import StoreFault, WorldFault
from greenroom.core.ports.log import (
    ArchiveRow,
    EventBatch,
    InboxRow,
    Lease,
    LeaseHolder,
    StateSnapshot,
    StoredEvent,
    StreamHead,
    StreamInfo,
)

READER_THREADS: Final = 4
"""How many reader threads there are. A background check occupies one while it runs."""


class ReaderPool:
    """Threads for queries and file access. Call its public methods from the event loop."""

    def __init__(self, path: Path, connect: Callable[[], sqlite3.Connection]) -> None:
        self._path = path
        self._connect = connect
        self._threads = ThreadPoolExecutor(READER_THREADS, thread_name_prefix="greenroom-reader")
        self._free: list[sqlite3.Connection] = []
        self._busy: set[sqlite3.Connection] = set()
        self._closed = False

    async def query(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query on a connection that no other query uses."""
        return await self.run(lambda: self._run_query(query))

    async def run(self, work: Callable[[], T]) -> T:
        """Run a blocking function in a thread."""
        self._refuse_if_closed()
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._translate, work)

    def close(self) -> None:
        """Interrupt running queries and end the threads."""
        self._closed = True
        for db in tuple(self._busy):
            db.interrupt()
        self._threads.shutdown()
        while self._free:
            self._free.pop().close()

    def _translate(self, work: Callable[[], T]) -> T:
        self._refuse_if_closed()
        with translate_errors(self._path):
            return work()

    def _run_query(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            db = self._free.pop()
        except IndexError:
            db = self._connect()
            db.execute("PRAGMA query_only = 1")
        self._busy.add(db)
        try:
            return query(db)
        finally:
            self._busy.discard(db)
            if isinstance(db, FrozenConnection):  # it never sees later changes
                db.close()
            else:
                self._free.append(db)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreFault("storage.database_closed", path=self._path)


UNREFERENCED_AGE_S: Final = 3600.0
"""Age in seconds at which an unreferenced blob is removed. A blob is written before the event that names it."""

ANSWERED_AGE_S: Final = 86400.0
"""Age in seconds at which answered inbox rows are removed."""

PAGES_PER_VACUUM: Final = 2000
"""How many pages one vacuum step returns to the system."""


class StoreMaintenance:
    """Garbage collection and integrity checks of a store."""

    def __init__(
        self,
        path: Path,
        *,
        writer: Callable[[], Writer],
        readers: ReaderPool,
        blobs: BlobFiles,
        clock: Callable[[], float],
    ) -> None:
        self._path = path
        self._writer = writer
        self._readers = readers
        self._blobs = blobs
        self._clock = clock

    async def collect(self) -> int:
        """Remove unreferenced data and return free pages to the system. Return the number of bytes freed."""
        before = await self._readers.run(self._measure_size)
        await self._writer().change(partial(drop_answered, before=int((self._clock() - ANSWERED_AGE_S) * 1000)))
        for number in await self._readers.query(statements.list_forgotten):
            await self.sweep(number)
        freed = await self._collect_blobs()
        free = await self._writer().change(count_free_pages, mode="bare")
        while free > (remaining := await self._writer().change(shrink, mode="bare")):
            free = remaining
        await self._writer().change(truncate_wal, mode="bare")
        return freed + max(0, before - await self._readers.run(self._measure_size))

    async def sweep(self, number: int) -> None:
        """Delete all rows of a forgotten stream."""
        while not await self._writer().change(partial(statements.sweep, number=number)):
            pass

    async def check(self) -> Sequence[str]:
        """Return a description of each damage in the tables and blobs."""
        problems = list(await self._readers.query(statements.find_damage))
        after = ""
        while page := await self._readers.query(partial(statements.list_referenced, after=after)):
            problems += await self._readers.run(partial(self._find_damaged, page))
            after = page[-1]
        return problems

    async def _collect_blobs(self) -> int:
        before = self._clock() - UNREFERENCED_AGE_S
        freed = 0
        for digests in await self._readers.run(lambda: [page for page in self._blobs.list_old(before) if page]):
            freed += await self._writer().change(partial(self._remove_unreferenced, digests=digests, before=before))
        return freed

    def _remove_unreferenced(self, db: sqlite3.Connection, digests: Sequence[str], before: float) -> ChangeResult[int]:
        # In a write transaction, so that no append references a blob between the query and the deletion.
        return sum(self._blobs.remove(digest, before) for digest in statements.filter_unreferenced(db, digests)), None

    def _find_damaged(self, digests: Sequence[str]) -> Sequence[str]:
        problems = []
        for digest in digests:
            try:
                self._blobs.get(digest)
            except StoreFault as fault:
                problems.append(str(fault))
        return problems

    def _measure_size(self) -> int:
        return sum(file.stat().st_size for file in list_files(self._path) if file.exists())


def drop_answered(db: sqlite3.Connection, before: int) -> ChangeResult[None]:
    """Delete the inbox rows that were answered before this time."""
    db.execute("DELETE FROM inbox WHERE answered_at < ?", (before,))
    return None, None


def count_free_pages(db: sqlite3.Connection) -> ChangeResult[int]:
    """Return the number of free pages in the file."""
    return db.execute("PRAGMA freelist_count").fetchone()[0], None


def shrink(db: sqlite3.Connection) -> ChangeResult[int]:
    """Return some free pages to the system, and the number that is left to the caller."""
    db.execute(f"PRAGMA incremental_vacuum({PAGES_PER_VACUUM})").fetchall()
    return count_free_pages(db)


def truncate_wal(db: sqlite3.Connection) -> ChangeResult[None]:
    """Truncate the WAL, unless a reader still needs it."""
    (timeout,) = db.execute("PRAGMA busy_timeout").fetchone()
    db.execute("PRAGMA busy_timeout = 100")
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.execute(f"PRAGMA busy_timeout = {timeout}")
    return None, None


class Poller:
    """One task that polls SQLite for changes, shared by all listeners."""

    def __init__(
        self,
        path: Path,
        readers: ReaderPool,
        connect: Callable[[], sqlite3.Connection],
        watch: StreamWatch,
        *,
        interval: float,
    ) -> None:
        self._path = path
        self._readers = readers
        self._connect = connect
        self._watch = watch
        self._interval = interval
        self._task: asyncio.Task[None] | None = None
        self._db: sqlite3.Connection | None = None

    @contextmanager
    def listen(self, stream: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set when any process may have changed the stream."""
        with self._watch.listen(stream) as event:
            self.ensure()
            yield event

    def ensure(self) -> None:
        """Start the polling task if it does not run."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._poll(), name="greenroom-poller")

    async def close(self) -> None:
        """Stop polling and wake all listeners, so that they find the store closed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._watch.wake_all()

    def close_connection(self) -> None:
        """Close the connection. Call this when no thread can be using it."""
        if self._db is not None:
            self._db.close()
            self._db = None

    async def _poll(self) -> None:
        seen = None
        try:
            while self._watch.has_listeners:
                now = await self._readers.run(self._read_version)
                if now != seen:
                    # Appends do not wake listeners of inboxes.
                    self._watch.wake_all(inboxes=seen is None or now[1:] != seen[1:])
                    seen = now
                await asyncio.sleep(self._interval)
        except WorldFault:
            self._watch.wake_all()  # each listener reads and gets the fault

    def _read_version(self) -> tuple[int, ...]:
        if self._db is None:
            self._db = self._connect()
        if isinstance(self._db, FrozenConnection):
            self.close_connection()
            return tuple(stamp for file in list_files(self._path) for stamp in read_stamps(file))
        (version,) = self._db.execute("PRAGMA data_version").fetchone()
        return (int(version), *(self._db.execute("SELECT max(seq) FROM inbox").fetchone()))


def list_files(path: Path) -> tuple[Path, Path]:
    """Return the files that a commit changes: the database and its WAL."""
    return path, path.with_name(f"{path.name}-wal")


def read_stamps(file: Path) -> tuple[int, ...]:
    """Return values that change with every write to the file; empty if the file is missing."""
    try:
        status = file.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


T = TypeVar("T")


class SqliteLog:
    """The ports `Log` and `Blobs` on SQLite. Create it with `open`; it belongs to that event loop."""

    def __init__(
        self,
        folder: StoreFolder,
        db: sqlite3.Connection | None,
        readers: ReaderPool,
        *,
        clock: Callable[[], float],
        poll: float,
    ) -> None:
        watch = StreamWatch()
        self.path = folder.path
        self._side_record = folder.side
        self._readers = readers
        self._blobs = BlobFiles(folder.home / "blobs")
        self._leases = LeaseFiles(folder.home / "leases")
        self._committer: Committer | None = None
        self._writer: Writer | None = None
        if db is not None:
            appender = Appender(self._blobs, clock)
            self._committer = Committer(
                folder.path, db, connect=folder.connect_writer, side=folder.side, appender=appender
            )
            self._writer = Writer(folder.path, self._committer, watch)
        self._poller = Poller(folder.path, readers, folder.connect_reader, watch, interval=poll)
        self._upkeep = StoreMaintenance(
            folder.path, writer=lambda: self._open_writer, readers=readers, blobs=self._blobs, clock=clock
        )
        self._tokens = itertools.count(1)

    @classmethod
    async def open(
        cls,
        home: Path,
        *,
        access: Access = "make",
        clock: Callable[[], float] = time.time,
        timeout: float = 10.0,
        poll: float = 0.05,
        accept_loss: bool = False,
        connection: type[sqlite3.Connection] = sqlite3.Connection,
    ) -> SqliteLog:
        """Open the store in a folder, or create it. With `accept_loss`, open it even if acknowledged commits are
        missing.

        `access` says whether to create, change or only read it. When reading, every writing method raises, and a
        missing store appears empty. `clock` returns seconds. `timeout` is how long to wait for a lock. `poll` is the
        interval for detecting commits of other processes. `connection` lets tests inject faults.
        """
        folder = StoreFolder(home, timeout=timeout, connection=connection)
        readers = ReaderPool(folder.path, folder.connect_reader)
        try:
            db = await readers.run(partial(folder.open, access, accept_loss=accept_loss))
        except BaseException:
            readers.close()
            raise
        return cls(folder, db, readers, clock=clock, poll=poll)

    @property
    def _open_writer(self) -> Writer:
        if self._writer is None:
            raise StoreFault("storage.opened_read_only", path=self.path)
        return self._writer

    @property
    def commits(self) -> int:
        """The number of transactions that this instance committed."""
        return self._committer.commits if self._committer else 0

    async def create(self, stream: str, at: int) -> bool:
        return await self._open_writer.change(partial(statements.create_stream, stream=stream, at=at))

    async def streams(self) -> Sequence[StreamInfo]:
        return await self._readers.query(partial(statements.list_streams, leases=self._leases))

    async def forget(self, stream: str) -> None:
        forget = statements.StreamRemoval(self._leases, stream)
        number = await self._open_writer.change(forget, stream=stream, undo=forget.undo)
        await self._upkeep.sweep(number)

    async def append(self, batch: EventBatch) -> int:
        return await self._open_writer.append(batch)

    async def head(self, stream: str) -> StreamHead:
        return await self._readers.query(partial(statements.read_head, stream=stream))

    async def read(self, stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[Sequence[StoredEvent]]:
        while page := await self._read_page(stream, after, upto):
            after = page[-1].version
            yield page

    async def tail(self, stream: str, after: int = 0) -> AsyncIterator[Sequence[StoredEvent]]:
        with self._poller.listen(stream) as changed:
            while True:
                changed.clear()
                while page := await self._read_page(stream, after, None):
                    after = page[-1].version
                    yield page
                self._poller.ensure()
                await changed.wait()

    async def _read_page(self, stream: str, after: int, upto: int | None) -> Sequence[StoredEvent]:
        page = await self._readers.query(partial(statements.read_page, stream=stream, after=after, upto=upto))
        if page and page[-1].version <= after:  # a damaged page, which would be read for ever
            raise StoreFault("storage.damaged", path=self.path, error="its rows are not in order")
        return page

    async def save_snapshot(self, stream: str, snapshot: StateSnapshot) -> None:
        await self._open_writer.change(partial(statements.save_snapshot, stream=stream, snapshot=snapshot))

    async def load_snapshot(self, stream: str, fingerprint: str, upto: int | None = None) -> StateSnapshot | None:
        query = partial(statements.load_snapshot, stream=stream, fingerprint=fingerprint, upto=upto)
        return await self._readers.query(query)

    async def read_archive(
        self, stream: str, kind: str, *, owner: str | None = None, after: int = 0, limit: int = 1000
    ) -> Sequence[ArchiveRow]:
        query = partial(statements.read_archive, stream=stream, kind=kind, owner=owner, after=after, limit=limit)
        return await self._readers.query(query)

    async def chain(self, stream: str, version: int, limit: int = 1000) -> Sequence[StoredEvent]:
        return await self._readers.query(partial(statements.read_chain, stream=stream, version=version, limit=limit))

    async def pick(self, stream: str, versions: Sequence[int]) -> Sequence[StoredEvent]:
        return await self._readers.query(partial(statements.read_versions, stream=stream, versions=versions))

    async def newest(self, stream: str, type_: str, field: str, value: str) -> StoredEvent | None:
        return await self._readers.query(
            partial(statements.find_newest, stream=stream, type_=type_, field=field, value=value)
        )

    async def find(self, stream: str, kind: str, key: str) -> ArchiveRow | None:
        return await self._readers.query(partial(statements.find_archived, stream=stream, kind=kind, key=key))

    async def rebuild_archive(self, stream: str, rows: AsyncIterator[Sequence[ArchiveRow]]) -> int:
        token = next(self._tokens)
        try:
            async for page in rows:
                await self._open_writer.change(partial(statements.stage, token=token, rows=page), mode="bare")
            return await self._open_writer.change(partial(statements.unstage, token=token, stream=stream))
        except BaseException:
            self._run_unattended(partial(statements.discard, token=token), mode="bare")
            raise

    def _run_unattended(self, work: ChangeWork[None], *, mode: ChangeMode = "transaction") -> None:
        with suppress(StoreFault):  # closed: the temporary table and the locks are gone too
            pending = self._open_writer.change(work, mode=mode)
            pending.add_done_callback(asyncio.Future.exception)  # avoids the warning about an unread exception

    async def put(self, stream: str, row: InboxRow) -> bool:
        return await self._open_writer.change(
            partial(statements.put_intent, stream=stream, row=row), stream=make_inbox_key(stream)
        )

    async def list_inbox(self, stream: str) -> Sequence[InboxRow]:
        return (await self._readers.query(partial(statements.read_waiting, stream=stream)))[0]

    async def arrivals(self, stream: str) -> AsyncIterator[Sequence[InboxRow]]:
        last = 0
        with self._poller.listen(make_inbox_key(stream)) as changed:
            while True:
                changed.clear()
                rows, last = await self._readers.query(partial(statements.read_waiting, stream=stream, after=last))
                if rows:
                    yield rows
                self._poller.ensure()
                await changed.wait()

    async def outcome(self, stream: str, intent_id: str) -> bytes | None:
        return await self._readers.query(partial(statements.read_outcome, stream=stream, intent_id=intent_id))

    async def answer(self, stream: str, intent_id: str) -> bytes:
        with self._poller.listen(stream) as changed:
            while True:
                changed.clear()
                outcome = await self.outcome(stream, intent_id)
                if outcome is not None:
                    return outcome
                self._poller.ensure()
                await changed.wait()

    async def acquire(
        self, stream: str, owner: str, *, force: bool = False, made_at: int | None = None
    ) -> Lease | LeaseHolder:
        acquire = statements.LeaseAcquisition(self._leases, stream, owner, force=force, made_at=made_at)
        answer = self._open_writer.change(acquire, mode="grouped", undo=acquire.undo)
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            answer.add_done_callback(self._release_unwanted)
            raise

    def _release_unwanted(self, answer: asyncio.Future[Lease | LeaseHolder]) -> None:
        """Release a lease whose caller was cancelled before it arrived."""
        lease = None if answer.cancelled() or answer.exception() else answer.result()
        if isinstance(lease, Lease):
            self._run_unattended(partial(statements.release_lease, leases=self._leases, lease=lease))

    async def release(self, lease: Lease) -> None:
        release = partial(statements.release_lease, leases=self._leases, lease=lease)
        await self._open_writer.change(release, mode="grouped")

    async def holder(self, stream: str) -> LeaseHolder | None:
        return await self._readers.query(partial(statements.find_holder, leases=self._leases, stream=stream))

    async def put_blob(self, data: bytes) -> str:
        _ = self._open_writer  # raises if opened for reading only
        return await self._readers.run(partial(self._blobs.put, data))

    async def get_blob(self, digest: str) -> bytes:
        return await self._readers.run(partial(self._blobs.get, digest))

    async def check(self) -> Sequence[str]:
        return await self._upkeep.check()

    async def collect(self) -> int:
        return await self._upkeep.collect()

    async def close(self) -> None:
        await self._poller.close()
        if self._writer is not None:
            await self._writer.close()
        self._readers.close()
        self._poller.close_connection()
        self._leases.close()
        self._side_record.close()
