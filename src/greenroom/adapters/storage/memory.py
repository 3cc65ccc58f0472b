"""The log in memory, for tests and `--ephemeral`. Everything is lost when the process ends."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Final

from greenroom.adapters.storage.watch import StreamWatch, make_inbox_key
from greenroom.core.base.errors import Bug, StaleOwner, StoreFault, translate
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

PAGE_SIZE: Final = 500
UNREFERENCED_AGE_S: Final = 3600.0
ANSWERED_AGE_S: Final = 86400.0


@dataclass(slots=True, kw_only=True)
class InboxEntry:
    """An inbox row and its outcome."""

    seq: int
    row: InboxRow
    outcome: bytes | None = None
    answered_at: float = 0.0


@dataclass(slots=True, kw_only=True)
class MemoryStream:
    """One stream with all its data. `holder` is the log instance with the current lease."""

    created_at: int
    epoch: int = 0
    owner: str = ""
    holder: object = None
    batch: str = ""
    batch_epoch: int = 0
    events: list[StoredEvent] = field(default_factory=list)
    archive: list[ArchiveRow] = field(default_factory=list)
    snapshots: dict[int, StateSnapshot] = field(default_factory=dict)
    inbox: dict[str, InboxEntry] = field(default_factory=dict)
    blobs: set[str] = field(default_factory=set)
    questions: int | None = None

    @property
    def head(self) -> StreamHead:
        """The current version, epoch and batch."""
        return StreamHead(version=len(self.events), epoch=self.batch_epoch, batch=self.batch)


class MemoryStore:
    """Shared data of several log instances, as processes share a file."""

    def __init__(self) -> None:
        self.streams: dict[str, MemoryStream] = {}
        self.blobs: dict[str, tuple[bytes, float]] = {}
        self.watch = StreamWatch()
        self.seqs = count(1)


class MemoryLog:
    """The ports `Log` and `Blobs` in memory; the ports describe the methods."""

    def __init__(self, memory: MemoryStore | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._memory = MemoryStore() if memory is None else memory
        self._clock = clock
        self._closed = False

    async def create(self, stream: str, at: int) -> bool:
        if stream in self._require_open().streams:
            return False
        self._memory.streams[stream] = MemoryStream(created_at=at)
        return True

    async def streams(self) -> Sequence[StreamInfo]:
        by_age = sorted(self._require_open().streams.items(), key=lambda item: item[1].created_at)
        return [self._make_info(name, stream) for name, stream in by_age]

    async def forget(self, stream: str) -> None:
        state = self._find_stream(stream)
        if state.holder not in {None, self}:
            raise StaleOwner("storage.stream_in_use", stream=stream, owner=state.owner)
        del self._memory.streams[stream]
        self._memory.watch.wake(stream)
        self._memory.watch.wake(make_inbox_key(stream))

    async def append(self, batch: EventBatch) -> int:
        """Write the batch and return the new version. All checks come before the first change."""
        stream = self._find_stream(batch.stream)
        self._check_fence(stream, batch)
        self._check_batch(stream, batch)
        newest = len(stream.events) + len(batch.events)
        stream.events += [
            StoredEvent(version, event.at, event.type, event.data, event.ends or version == newest)
            for version, event in enumerate(batch.events, len(stream.events) + 1)
        ]
        stream.archive.extend(batch.archive)
        for taken in batch.taken:
            stream.inbox[taken.intent_id].outcome = taken.outcome
            stream.inbox[taken.intent_id].answered_at = self._clock()
        stream.blobs.update(batch.blobs)
        stream.questions = stream.questions if batch.questions is None else batch.questions
        stream.batch, stream.batch_epoch = batch.batch, batch.epoch
        self._memory.watch.wake(batch.stream)
        return len(stream.events)

    @staticmethod
    def _check_fence(stream: MemoryStream, batch: EventBatch) -> None:
        if stream.epoch != batch.epoch or not stream.owner:
            code = "storage.owner_with_epoch" if stream.owner else "storage.no_owner_since"
            now = translate(code, owner=stream.owner, epoch=stream.epoch)
            raise StaleOwner("storage.epoch_lost", epoch=batch.epoch, stream=batch.stream, now=now)
        if len(stream.events) != batch.expected_version:
            raise StaleOwner(
                "storage.version_conflict",
                stream=batch.stream,
                version=len(stream.events),
                expected_version=batch.expected_version,
            )

    def _check_batch(self, stream: MemoryStream, batch: EventBatch) -> None:
        taken = [row.intent_id for row in batch.taken]
        for intent_id in taken:
            row = stream.inbox.get(intent_id)
            if row is None or row.outcome is not None or taken.count(intent_id) > 1:
                raise Bug(f"Batch {batch.batch!r} takes the intent {intent_id!r}, which is not waiting in the inbox.")
        if len({row.version for row in batch.archive}) < len(batch.archive):
            raise Bug(f"Batch {batch.batch!r} archives two records at one version.")
        for digest in batch.blobs:
            if digest not in self._memory.blobs:
                raise Bug(f"Batch {batch.batch!r} names the blob {digest!r}, which was not stored.")

    async def head(self, stream: str) -> StreamHead:
        return self._find_stream(stream).head

    async def read(self, stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[Sequence[StoredEvent]]:
        while page := self._find_stream(stream).events[after : after + PAGE_SIZE][
            : None if upto is None else max(0, upto - after)
        ]:
            after = page[-1].version
            yield page

    async def tail(self, stream: str, after: int = 0) -> AsyncIterator[Sequence[StoredEvent]]:
        with self._memory.watch.listen(stream) as changed:
            while True:
                changed.clear()
                while page := self._find_stream(stream).events[after : after + PAGE_SIZE]:
                    after = page[-1].version
                    yield page
                await changed.wait()

    async def save_snapshot(self, stream: str, snapshot: StateSnapshot) -> None:
        snapshots = self._find_stream(stream).snapshots
        for old in [old for old in snapshots.values() if old.version < snapshot.version]:
            if old.fingerprint != snapshot.fingerprint:
                del snapshots[old.version]
        snapshots[snapshot.version] = snapshot

    async def load_snapshot(self, stream: str, fingerprint: str, upto: int | None = None) -> StateSnapshot | None:
        snapshots = self._find_stream(stream).snapshots
        usable = [s for s in snapshots.values() if s.fingerprint == fingerprint and (upto is None or s.version <= upto)]
        return max(usable, key=lambda snapshot: snapshot.version, default=None)

    async def read_archive(
        self, stream: str, kind: str, *, owner: str | None = None, after: int = 0, limit: int = 1000
    ) -> Sequence[ArchiveRow]:
        rows = sorted(self._find_stream(stream).archive, key=lambda row: row.version)
        wanted = (r for r in rows if r.kind == kind and r.version > after and owner in {None, r.owner})
        return list(islice(wanted, limit))

    async def chain(self, stream: str, version: int, limit: int = 1000) -> Sequence[StoredEvent]:
        events = self._find_stream(stream).events
        chained: list[StoredEvent] = []
        while 0 < version <= len(events) and len(chained) < limit:
            chained.append(events[version - 1])
            version = json.loads(chained[-1].data).get("previous", 0)
        return chained[::-1]

    async def pick(self, stream: str, versions: Sequence[int]) -> Sequence[StoredEvent]:
        events = self._find_stream(stream).events
        return [events[version - 1] for version in sorted(set(versions)) if 0 < version <= len(events)]

    async def newest(self, stream: str, type_: str, field: str, value: str) -> StoredEvent | None:
        candidates = (event for event in reversed(self._find_stream(stream).events) if event.type == type_)
        return next((event for event in candidates if json.loads(event.data).get(field) == value), None)

    async def find(self, stream: str, kind: str, key: str) -> ArchiveRow | None:
        rows = [row for row in self._find_stream(stream).archive if (row.kind, row.key) == (kind, key)]
        return max(reversed(rows), key=lambda row: row.version, default=None)

    async def rebuild_archive(self, stream: str, rows: AsyncIterator[Sequence[ArchiveRow]]) -> int:
        fresh = [row async for page in rows for row in page]
        self._find_stream(stream).archive = fresh
        return len(fresh)

    async def put(self, stream: str, row: InboxRow) -> bool:
        inbox = self._find_stream(stream).inbox
        if row.intent_id in inbox:
            return False
        inbox[row.intent_id] = InboxEntry(seq=next(self._memory.seqs), row=row)
        self._memory.watch.wake(make_inbox_key(stream))
        return True

    async def list_inbox(self, stream: str) -> Sequence[InboxRow]:
        return [entry.row for entry in self._find_stream(stream).inbox.values() if entry.outcome is None]

    async def arrivals(self, stream: str) -> AsyncIterator[Sequence[InboxRow]]:
        last = 0
        with self._memory.watch.listen(make_inbox_key(stream)) as changed:
            while True:
                changed.clear()
                inbox = self._find_stream(stream).inbox.values()
                entries = [entry for entry in inbox if entry.outcome is None and entry.seq > last]
                if entries:
                    last = entries[-1].seq
                    yield [entry.row for entry in entries]
                await changed.wait()

    async def outcome(self, stream: str, intent_id: str) -> bytes | None:
        entry = self._find_stream(stream).inbox.get(intent_id)
        return None if entry is None else entry.outcome

    async def answer(self, stream: str, intent_id: str) -> bytes:
        with self._memory.watch.listen(stream) as changed:
            while (outcome := await self.outcome(stream, intent_id)) is None:
                await changed.wait()
                changed.clear()
            return outcome

    async def acquire(
        self, stream: str, owner: str, *, force: bool = False, made_at: int | None = None
    ) -> Lease | LeaseHolder:
        if made_at is not None:
            await self.create(stream, made_at)
        state = self._find_stream(stream)
        if state.holder is not None and not force:
            return LeaseHolder(stream=stream, owner=state.owner, epoch=state.epoch)
        state.holder, state.owner, state.epoch = self, owner, state.epoch + 1
        return Lease(stream=stream, owner=owner, epoch=state.epoch)

    async def release(self, lease: Lease) -> None:
        state = self._require_open().streams.get(lease.stream)
        if state is not None and state.epoch == lease.epoch:
            state.holder, state.owner = None, ""

    async def holder(self, stream: str) -> LeaseHolder | None:
        state = self._find_stream(stream)
        return None if state.holder is None else LeaseHolder(stream=stream, owner=state.owner, epoch=state.epoch)

    async def put_blob(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self._require_open().blobs[digest] = (data, self._clock())
        return digest

    async def get_blob(self, digest: str) -> bytes:
        stored = self._require_open().blobs.get(digest)
        if stored is None:
            raise StoreFault("storage.blob_missing", path=digest)
        return stored[0]

    async def check(self) -> Sequence[str]:
        """Return no damage: memory cannot be damaged."""
        self._require_open()
        return ()

    async def collect(self) -> int:
        streams = self._require_open().streams.values()
        referenced = {digest for stream in streams for digest in stream.blobs}
        now = self._clock()
        blobs = self._memory.blobs
        old = [d for d, (_, at) in blobs.items() if d not in referenced and at < now - UNREFERENCED_AGE_S]
        freed = sum(len(blobs.pop(digest)[0]) for digest in old)
        for stream in streams:
            for entry in [
                e for e in stream.inbox.values() if e.outcome is not None and e.answered_at < now - ANSWERED_AGE_S
            ]:
                freed += len(stream.inbox.pop(entry.row.intent_id).row.data)
        return freed

    async def close(self) -> None:
        """Release all leases, as the end of a process would."""
        self._closed = True
        for stream in self._memory.streams.values():
            if stream.holder is self:
                stream.holder = None
        self._memory.watch.wake_all()

    def _require_open(self) -> MemoryStore:
        if self._closed:
            raise StoreFault("storage.log_closed")
        return self._memory

    def _find_stream(self, stream: str) -> MemoryStream:
        state = self._require_open().streams.get(stream)
        if state is None:
            raise StoreFault("storage.unknown_stream", stream=stream)
        return state

    def _make_info(self, name: str, stream: MemoryStream) -> StreamInfo:
        return StreamInfo(
            stream=name,
            created_at=stream.created_at,
            head=stream.head,
            owner=stream.owner if stream.holder is not None else None,
            event_bytes=sum(len(event.data) for event in stream.events),
            archive_bytes=sum(len(row.data) for row in stream.archive),
            blob_bytes=sum(len(self._memory.blobs[digest][0]) for digest in stream.blobs),
            questions=stream.questions,
        )
