"""The log and its blobs in a folder that several processes share: `greenroom.db` and what lies beside it."""

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

from greenroom.adapters.storage.database import Frozen
from greenroom.adapters.storage.sqlite import statements
from greenroom.adapters.storage.sqlite.faults import translated
from greenroom.adapters.storage.sqlite.files import BlobFiles, Leases
from greenroom.adapters.storage.sqlite.opening import Access, Opening
from greenroom.adapters.storage.sqlite.writer import Answer, Appender, Committer, Mode, Work, Writer
from greenroom.adapters.storage.watch import Watch, inbox_of
from greenroom.core.base.errors import StoreFault, WorldFault
from greenroom.core.ports.log import (
    Append,
    ArchiveRow,
    Head,
    Held,
    InboxRow,
    Lease,
    Snapshot,
    StoredEvent,
    StreamInfo,
)

THREADS: Final = 4
"""A background check takes one of them for its whole time."""


class Readers:
    """Threads for reading and for files. Public methods are called from the event loop."""

    def __init__(self, path: Path, connect: Callable[[], sqlite3.Connection]) -> None:
        self._path = path
        self._connect = connect
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="greenroom-reader")
        self._free: list[sqlite3.Connection] = []
        self._busy: set[sqlite3.Connection] = set()
        self._closed = False

    async def ask(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query on a connection that nobody else uses."""
        return await self.run(lambda: self._ask(query))

    async def run(self, work: Callable[[], T]) -> T:
        """Run anything that blocks."""
        self._refuse_if_closed()
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._translate, work)

    def close(self) -> None:
        """Break off what is being read, and end the threads."""
        self._closed = True
        for db in tuple(self._busy):
            db.interrupt()
        self._threads.shutdown()
        while self._free:
            self._free.pop().close()

    def _translate(self, work: Callable[[], T]) -> T:
        self._refuse_if_closed()
        with translated(self._path):
            return work()

    def _ask(self, query: Callable[[sqlite3.Connection], T]) -> T:
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
            if isinstance(db, Frozen):  # nothing new is ever seen through it
                db.close()
            else:
                self._free.append(db)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreFault(f"{self._path} was closed. Open it again.")


UNNAMED_AGE: Final = 3600.0
"""Seconds. A blob is written before the event that names it: a young one may be waiting for its event."""

ANSWERED_AGE: Final = 86400.0
"""Seconds. After a day nobody asks for an answer any more."""

VACUUM: Final = 2000
"""Pages given back at once."""


class Upkeep:
    """Collecting and checking."""

    def __init__(
        self,
        path: Path,
        *,
        writer: Callable[[], Writer],
        readers: Readers,
        blobs: BlobFiles,
        clock: Callable[[], float],
    ) -> None:
        self._path = path
        self._writer = writer
        self._readers = readers
        self._blobs = blobs
        self._clock = clock

    async def collect(self) -> int:
        """Drop what nothing refers to, give the room back to the system; returns the bytes freed."""
        before = await self._readers.run(self._size)
        limit = int((self._clock() - ANSWERED_AGE) * 1000)
        await self._writer().change(partial(drop_answered, before=limit))
        for number in await self._readers.ask(statements.forgotten):
            await self.sweep(number)
        freed = await self._collect_blobs()
        free = await self._writer().change(free_pages, mode="bare")
        while free > (left := await self._writer().change(shrink, mode="bare")):
            free = left
        await self._writer().change(truncate_wal, mode="bare")
        return freed + max(0, before - await self._readers.run(self._size))

    async def sweep(self, number: int) -> None:
        """Delete all rows of a forgotten stream."""
        while not await self._writer().change(partial(statements.sweep, number=number)):
            pass

    async def check(self) -> Sequence[str]:
        """What is wrong with the tables and the blobs."""
        found = list(await self._readers.ask(statements.damage))
        after = ""
        while page := await self._readers.ask(partial(statements.named, after=after)):
            found += await self._readers.run(partial(self._damaged, page))
            after = page[-1]
        return found

    async def _collect_blobs(self) -> int:
        before = self._clock() - UNNAMED_AGE
        freed = 0
        for digests in await self._readers.run(lambda: [page for page in self._blobs.old(before) if page]):
            freed += await self._writer().change(partial(self._remove_unnamed, digests=digests, before=before))
        return freed

    def _remove_unnamed(self, db: sqlite3.Connection, digests: Sequence[str], before: float) -> Answer[int]:
        # In a write transaction: no append names one of them between the question and the deletion.
        return sum(self._blobs.remove(digest, before) for digest in statements.unnamed(db, digests)), None

    def _damaged(self, digests: Sequence[str]) -> Sequence[str]:
        found = []
        for digest in digests:
            try:
                self._blobs.get(digest)
            except StoreFault as fault:
                found.append(str(fault))
        return found

    def _size(self) -> int:
        return sum(file.stat().st_size for file in files_of(self._path) if file.exists())


def drop_answered(db: sqlite3.Connection, before: int) -> Answer[None]:
    """Delete the inbox rows that were answered before then."""
    db.execute("DELETE FROM inbox WHERE answered_at < ?", (before,))
    return None, None


def free_pages(db: sqlite3.Connection) -> Answer[int]:
    """How many pages of the file hold nothing."""
    return db.execute("PRAGMA freelist_count").fetchone()[0], None


def shrink(db: sqlite3.Connection) -> Answer[int]:
    """Give some free pages back to the system; how many are left."""
    db.execute(f"PRAGMA incremental_vacuum({VACUUM})").fetchall()
    return free_pages(db)


def truncate_wal(db: sqlite3.Connection) -> Answer[None]:
    """Empty the WAL, unless somebody reads an old page of it just now."""
    (patience,) = db.execute("PRAGMA busy_timeout").fetchone()
    db.execute("PRAGMA busy_timeout = 100")
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.execute(f"PRAGMA busy_timeout = {patience}")
    return None, None


class Poller:
    """One task that asks SQLite whether anything changed, however many listen."""

    def __init__(
        self, path: Path, readers: Readers, connect: Callable[[], sqlite3.Connection], watch: Watch, *, every: float
    ) -> None:
        self._path = path
        self._readers = readers
        self._connect = connect
        self._watch = watch
        self._every = every
        self._task: asyncio.Task[None] | None = None
        self._db: sqlite3.Connection | None = None

    @contextmanager
    def listen(self, stream: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever somebody, anywhere, may have changed the stream."""
        with self._watch.listen(stream) as event:
            self.ensure()
            yield event

    def ensure(self) -> None:
        """See that somebody looks."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._poll(), name="greenroom-poller")

    async def close(self) -> None:
        """Stop looking and wake everybody: they find the store closed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._watch.wake_all()

    def close_connection(self) -> None:
        """Let the connection go, once no thread can be using it."""
        if self._db is not None:
            self._db.close()
            self._db = None

    async def _poll(self) -> None:
        seen = None
        try:
            while self._watch.busy:
                now = await self._readers.run(self._version)
                if now != seen:
                    # Of what others append those who look at an inbox want to know nothing.
                    self._watch.wake_all(inboxes=seen is None or now[1:] != seen[1:])
                    seen = now
                await asyncio.sleep(self._every)
        except WorldFault:
            self._watch.wake_all()  # each listener looks for itself and hears of it

    def _version(self) -> tuple[int, ...]:
        if self._db is None:
            self._db = self._connect()
        if isinstance(self._db, Frozen):
            self.close_connection()
            return tuple(stamp for file in files_of(self._path) for stamp in stamps(file))
        (version,) = self._db.execute("PRAGMA data_version").fetchone()
        return (int(version), *(self._db.execute("SELECT max(seq) FROM inbox").fetchone()))


def files_of(path: Path) -> tuple[Path, Path]:
    """The files in which a commit shows: the database and its WAL."""
    return path, path.with_name(f"{path.name}-wal")


def stamps(file: Path) -> tuple[int, ...]:
    """What differs when somebody has written to the file; nothing when it is not there."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


T = TypeVar("T")


class SqliteLog:
    """`Log` and `Blobs` on SQLite, as those ports say. Made by `open`; belongs to the event loop that opened it."""

    def __init__(
        self,
        place: Opening,
        db: sqlite3.Connection | None,
        readers: Readers,
        *,
        clock: Callable[[], float],
        poll: float,
    ) -> None:
        watch = Watch()
        self.path = place.path
        self._side = place.side
        self._readers = readers
        self._blobs = BlobFiles(place.home / "blobs")
        self._leases = Leases(place.home / "leases")
        self._committer: Committer | None = None
        self._writer: Writer | None = None
        if db is not None:
            appender = Appender(self._blobs, clock)
            self._committer = Committer(
                place.path, db, connect=place.connect_writer, side=place.side, appender=appender
            )
            self._writer = Writer(place.path, self._committer, watch)
        self._poller = Poller(place.path, readers, place.connect_reader, watch, every=poll)
        self._upkeep = Upkeep(place.path, writer=lambda: self._writing, readers=readers, blobs=self._blobs, clock=clock)
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
        """Open the store in this folder, or make one; `accept_loss` goes on though acknowledged commits are missing.

        `access` says whether one is made, changed, or only looked at: then every writing method is refused, and a store
        that is not there looks like an empty one. `clock` gives seconds, `timeout` is how long to wait for a lock,
        `poll` how often to look for commits of other processes while somebody listens. `connection` is for tests that
        inject faults.
        """
        place = Opening(home, timeout=timeout, connection=connection)
        readers = Readers(place.path, place.connect_reader)
        try:
            db = await readers.run(partial(place.open, access, accept_loss=accept_loss))
        except BaseException:
            readers.close()
            raise
        return cls(place, db, readers, clock=clock, poll=poll)

    @property
    def _writing(self) -> Writer:
        if self._writer is None:
            raise StoreFault(f"{self.path} was opened for looking only. Open it for statements.")
        return self._writer

    @property
    def commits(self) -> int:
        """How many transactions this instance committed."""
        return self._committer.commits if self._committer else 0

    # ------------------------------------------------------------------------------------------- streams

    async def create(self, stream: str, at: int) -> bool:
        return await self._writing.change(partial(statements.create, stream=stream, at=at))

    async def streams(self) -> Sequence[StreamInfo]:
        return await self._readers.ask(partial(statements.streams, leases=self._leases))

    async def forget(self, stream: str) -> None:
        forget = statements.Forget(self._leases, stream)
        number = await self._writing.change(forget, stream=stream, undo=forget.undo)
        await self._upkeep.sweep(number)

    async def append(self, batch: Append) -> int:
        return await self._writing.append(batch)

    async def head(self, stream: str) -> Head:
        return await self._readers.ask(partial(statements.head, stream=stream))

    async def read(self, stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[Sequence[StoredEvent]]:
        while page := await self._page(stream, after, upto):
            after = page[-1].version
            yield page

    async def tail(self, stream: str, after: int = 0) -> AsyncIterator[Sequence[StoredEvent]]:
        with self._poller.listen(stream) as changed:
            while True:
                changed.clear()
                while page := await self._page(stream, after, None):
                    after = page[-1].version
                    yield page
                self._poller.ensure()
                await changed.wait()

    async def _page(self, stream: str, after: int, upto: int | None) -> Sequence[StoredEvent]:
        return await self._readers.ask(partial(statements.page, stream=stream, after=after, upto=upto))

    # ------------------------------------------------------------------------------ snapshots and archive

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        await self._writing.change(partial(statements.save_snapshot, stream=stream, snapshot=snapshot))

    async def load_snapshot(self, stream: str, fingerprint: str, upto: int | None = None) -> Snapshot | None:
        query = partial(statements.load_snapshot, stream=stream, fingerprint=fingerprint, upto=upto)
        return await self._readers.ask(query)

    async def archived(
        self, stream: str, kind: str, *, owner: str | None = None, after: int = 0, limit: int = 1000
    ) -> Sequence[ArchiveRow]:
        query = partial(statements.archived, stream=stream, kind=kind, owner=owner, after=after, limit=limit)
        return await self._readers.ask(query)

    async def chain(self, stream: str, version: int, limit: int = 1000) -> Sequence[StoredEvent]:
        return await self._readers.ask(partial(statements.chain, stream=stream, version=version, limit=limit))

    async def pick(self, stream: str, versions: Sequence[int]) -> Sequence[StoredEvent]:
        return await self._readers.ask(partial(statements.pick, stream=stream, versions=versions))

    async def newest(self, stream: str, type_: str, field: str, value: str) -> StoredEvent | None:
        return await self._readers.ask(partial(statements.newest, stream=stream, type_=type_, field=field, value=value))

    async def find(self, stream: str, kind: str, key: str) -> ArchiveRow | None:
        return await self._readers.ask(partial(statements.find, stream=stream, kind=kind, key=key))

    async def rebuild_archive(self, stream: str, rows: AsyncIterator[Sequence[ArchiveRow]]) -> int:
        token = next(self._tokens)
        try:
            async for some in rows:
                await self._writing.change(partial(statements.stage, token=token, rows=some), mode="bare")
            return await self._writing.change(partial(statements.unstage, token=token, stream=stream))
        except BaseException:
            self._leave(partial(statements.discard, token=token), mode="bare")
            raise

    def _leave(self, work: Work[None], *, mode: Mode = "transaction") -> None:
        with suppress(StoreFault):  # closed: the temporary table and the locks went with it
            left = self._writing.change(work, mode=mode)
            left.add_done_callback(asyncio.Future.exception)  # nobody waits for it: see that nobody is warned

    # -------------------------------------------------------------------------------------------- inbox

    async def put(self, stream: str, row: InboxRow) -> bool:
        return await self._writing.change(partial(statements.put, stream=stream, row=row), stream=inbox_of(stream))

    async def waiting(self, stream: str) -> Sequence[InboxRow]:
        return (await self._readers.ask(partial(statements.waiting, stream=stream)))[0]

    async def arrivals(self, stream: str) -> AsyncIterator[Sequence[InboxRow]]:
        last = 0
        with self._poller.listen(inbox_of(stream)) as changed:
            while True:
                changed.clear()
                rows, last = await self._readers.ask(partial(statements.waiting, stream=stream, after=last))
                if rows:
                    yield rows
                self._poller.ensure()
                await changed.wait()

    async def outcome(self, stream: str, intent_id: str) -> bytes | None:
        return await self._readers.ask(partial(statements.outcome, stream=stream, intent_id=intent_id))

    async def answer(self, stream: str, intent_id: str) -> bytes:
        with self._poller.listen(stream) as changed:
            while True:
                changed.clear()
                found = await self.outcome(stream, intent_id)
                if found is not None:
                    return found
                self._poller.ensure()
                await changed.wait()

    # -------------------------------------------------------------------------------------------- lease

    async def acquire(
        self, stream: str, owner: str, *, force: bool = False, made_at: int | None = None
    ) -> Lease | Held:
        acquire = statements.Acquire(self._leases, stream, owner, force=force, made_at=made_at)
        answer = self._writing.change(acquire, undo=acquire.undo)
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            answer.add_done_callback(self._give_back)
            raise

    def _give_back(self, answer: asyncio.Future[Lease | Held]) -> None:
        """Whoever wanted the lease went away before it had it."""
        lease = None if answer.cancelled() or answer.exception() else answer.result()
        if isinstance(lease, Lease):
            self._leave(partial(statements.release, leases=self._leases, lease=lease))

    async def release(self, lease: Lease) -> None:
        await self._writing.change(partial(statements.release, leases=self._leases, lease=lease))

    async def holder(self, stream: str) -> Held | None:
        return await self._readers.ask(partial(statements.holder, leases=self._leases, stream=stream))

    # -------------------------------------------------------------------------------------------- blobs

    async def put_blob(self, data: bytes) -> str:
        _ = self._writing  # refused where one only looks
        return await self._readers.run(partial(self._blobs.put, data))

    async def get_blob(self, digest: str) -> bytes:
        return await self._readers.run(partial(self._blobs.get, digest))

    # ------------------------------------------------------------------------------------------- upkeep

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
        self._side.close()
