"""The log in memory: for tests and `--ephemeral`. It forgets everything with its process, and says so nowhere else."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Final

from greenroom.adapters.storage.watch import Watch, inbox_of
from greenroom.core.base.errors import Bug, StaleOwner, StoreFault
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

PAGE: Final = 500
UNNAMED_AGE: Final = 3600.0
ANSWERED_AGE: Final = 86400.0


@dataclass(slots=True, kw_only=True)
class Waiting:
    """An inbox row and what became of it."""

    seq: int
    row: InboxRow
    outcome: bytes | None = None
    answered_at: float = 0.0


@dataclass(slots=True, kw_only=True)
class Stream:
    """One stream with everything beside it. `holder` is the log instance whose lease lives."""

    created_at: int
    epoch: int = 0
    owner: str = ""
    holder: object = None
    batch: str = ""
    batch_epoch: int = 0
    events: list[StoredEvent] = field(default_factory=list)
    archive: list[ArchiveRow] = field(default_factory=list)
    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    inbox: dict[str, Waiting] = field(default_factory=dict)
    blobs: set[str] = field(default_factory=set)
    questions: int | None = None

    @property
    def head(self) -> Head:
        """Where it stands."""
        return Head(version=len(self.events), epoch=self.batch_epoch, batch=self.batch)


class Memory:
    """What a disk would hold: several log instances can share it, like processes share a file."""

    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}
        self.blobs: dict[str, tuple[bytes, float]] = {}
        self.watch = Watch()
        self.seqs = count(1)


class MemoryLog:
    """`Log` and `Blobs` in this process."""

    def __init__(self, memory: Memory | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._memory = Memory() if memory is None else memory
        self._clock = clock
        self._closed = False

    # ------------------------------------------------------------------------------------------- streams

    async def create(self, stream: str, at: int) -> bool:
        """Make an empty stream; False when it exists already."""
        if stream in self._open().streams:
            return False
        self._memory.streams[stream] = Stream(created_at=at)
        return True

    async def streams(self) -> Sequence[StreamInfo]:
        """All streams, oldest first."""
        found = sorted(self._open().streams.items(), key=lambda item: item[1].created_at)
        return [self._info(name, stream) for name, stream in found]

    async def forget(self, stream: str) -> None:
        """Delete a stream with everything beside it."""
        found = self._stream(stream)
        if found.holder not in {None, self}:
            raise StaleOwner(f"Stream {stream!r} belongs to {found.owner!r}, who is alive. Stop it first, then forget.")
        del self._memory.streams[stream]
        self._memory.watch.wake(stream)
        self._memory.watch.wake(inbox_of(stream))

    async def append(self, batch: Append) -> int:
        """Write the batch and return the new version: first every check, then every change."""
        stream = self._stream(batch.stream)
        self._fence(stream, batch)
        self._check(stream, batch)
        for version, event in enumerate(batch.events, len(stream.events) + 1):
            ends = event.ends or event is batch.events[-1]
            stream.events.append(StoredEvent(version, event.at, event.type, event.data, ends))
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
    def _fence(stream: Stream, batch: Append) -> None:
        if stream.epoch != batch.epoch or not stream.owner:
            now = f"{stream.owner!r} with epoch {stream.epoch}" if stream.owner else "nobody"
            raise StaleOwner(f"Epoch {batch.epoch} no longer owns stream {batch.stream!r}: {now} does. Stop here.")
        if len(stream.events) != batch.expected_version:
            raise StaleOwner(
                f"Stream {batch.stream!r} is at version {len(stream.events)}, not {batch.expected_version}: "
                "another append was quicker. Nothing was written; read the stream again."
            )

    def _check(self, stream: Stream, batch: Append) -> None:
        taken = [row.intent_id for row in batch.taken]
        for intent_id in taken:
            row = stream.inbox.get(intent_id)
            if row is None or row.outcome is not None or taken.count(intent_id) > 1:
                raise Bug(f"Batch {batch.batch!r} takes the intent {intent_id!r}, which does not wait in the inbox.")
        if len({row.version for row in batch.archive}) < len(batch.archive):
            raise Bug(f"Batch {batch.batch!r} archives two records at one version.")
        for digest in batch.blobs:
            if digest not in self._memory.blobs:
                raise Bug(f"Batch {batch.batch!r} names the blob {digest!r}, which was never put.")

    async def head(self, stream: str) -> Head:
        """Where the stream stands."""
        return self._stream(stream).head

    async def read(self, stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[Sequence[StoredEvent]]:
        """The events with after < version <= upto, in order, in pages."""
        while page := self._stream(stream).events[after : after + PAGE][
            : None if upto is None else max(0, upto - after)
        ]:
            after = page[-1].version
            yield page

    async def tail(self, stream: str, after: int = 0) -> AsyncIterator[Sequence[StoredEvent]]:
        """Like `read`, then the new ones as they are committed."""
        with self._memory.watch.listen(stream) as changed:
            while True:
                changed.clear()
                while page := self._stream(stream).events[after : after + PAGE]:
                    after = page[-1].version
                    yield page
                await changed.wait()

    # ------------------------------------------------------------------------------ snapshots and archive

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        """Keep this snapshot instead of all older ones of the stream."""
        kept = self._stream(stream).snapshots
        for version in [version for version in kept if version < snapshot.version]:
            del kept[version]
        kept[snapshot.version] = snapshot

    async def load_snapshot(self, stream: str, fingerprint: str, upto: int | None = None) -> Snapshot | None:
        """The newest snapshot made by these reducers, not newer than `upto`."""
        kept = self._stream(stream).snapshots
        good = [s for s in kept.values() if s.fingerprint == fingerprint and (upto is None or s.version <= upto)]
        return max(good, key=lambda snapshot: snapshot.version, default=None)

    async def archived(
        self, stream: str, kind: str, *, owner: str | None = None, after: int = 0, limit: int = 1000
    ) -> Sequence[ArchiveRow]:
        """Archive rows of a kind (of one owner), by version."""
        rows = sorted(self._stream(stream).archive, key=lambda row: row.version)
        wanted = (r for r in rows if r.kind == kind and r.version > after and owner in {None, r.owner})
        return list(islice(wanted, limit))

    async def chain(self, stream: str, version: int, limit: int = 1000) -> Sequence[StoredEvent]:
        """The event at `version` and those that `previous` leads back to, oldest first."""
        events = self._stream(stream).events
        found: list[StoredEvent] = []
        while 0 < version <= len(events) and len(found) < limit:
            found.append(events[version - 1])
            version = json.loads(found[-1].data).get("previous", 0)
        return found[::-1]

    async def pick(self, stream: str, versions: Sequence[int]) -> Sequence[StoredEvent]:
        """The events at these versions, by version."""
        events = self._stream(stream).events
        return [events[version - 1] for version in sorted(set(versions)) if 0 < version <= len(events)]

    async def newest(self, stream: str, type_: str, field: str, value: str) -> StoredEvent | None:
        """The newest event of this type whose data have this text in this field."""
        some = (event for event in reversed(self._stream(stream).events) if event.type == type_)
        return next((event for event in some if json.loads(event.data).get(field) == value), None)

    async def find(self, stream: str, kind: str, key: str) -> ArchiveRow | None:
        """One archive row: the newest of this key."""
        rows = [row for row in self._stream(stream).archive if (row.kind, row.key) == (kind, key)]
        return max(reversed(rows), key=lambda row: row.version, default=None)

    async def rebuild_archive(self, stream: str, rows: AsyncIterator[Sequence[ArchiveRow]]) -> int:
        """Replace the stream's archive by these rows, at once; returns how many."""
        fresh = [row async for some in rows for row in some]
        self._stream(stream).archive = fresh
        return len(fresh)

    # -------------------------------------------------------------------------------------------- inbox

    async def put(self, stream: str, row: InboxRow) -> bool:
        """Put an intent into the inbox; False when this intent id was there before."""
        inbox = self._stream(stream).inbox
        if row.intent_id in inbox:
            return False
        inbox[row.intent_id] = Waiting(seq=next(self._memory.seqs), row=row)
        self._memory.watch.wake(inbox_of(stream))
        return True

    async def waiting(self, stream: str) -> Sequence[InboxRow]:
        """The inbox rows that nobody took yet, oldest first."""
        return [entry.row for entry in self._stream(stream).inbox.values() if entry.outcome is None]

    async def arrivals(self, stream: str) -> AsyncIterator[Sequence[InboxRow]]:
        """The rows not yet taken, now and whenever there are new ones; each row once."""
        last = 0
        with self._memory.watch.listen(inbox_of(stream)) as changed:
            while True:
                changed.clear()
                inbox = self._stream(stream).inbox.values()
                entries = [entry for entry in inbox if entry.outcome is None and entry.seq > last]
                if entries:
                    last = entries[-1].seq
                    yield [entry.row for entry in entries]
                await changed.wait()

    async def outcome(self, stream: str, intent_id: str) -> bytes | None:
        """The answer to an intent, once the owner took it."""
        entry = self._stream(stream).inbox.get(intent_id)
        return None if entry is None else entry.outcome

    async def answer(self, stream: str, intent_id: str) -> bytes:
        """The answer to an intent, as soon as the owner took it."""
        with self._memory.watch.listen(stream) as changed:
            while (found := await self.outcome(stream, intent_id)) is None:
                await changed.wait()
                changed.clear()
            return found

    # -------------------------------------------------------------------------------------------- lease

    async def acquire(
        self, stream: str, owner: str, *, force: bool = False, made_at: int | None = None
    ) -> Lease | Held:
        """Become the owner, or hear who is."""
        if made_at is not None:
            await self.create(stream, made_at)
        found = self._stream(stream)
        if found.holder is not None and not force:
            return Held(stream=stream, owner=found.owner, epoch=found.epoch)
        found.holder, found.owner, found.epoch = self, owner, found.epoch + 1
        return Lease(stream=stream, owner=owner, epoch=found.epoch)

    async def release(self, lease: Lease) -> None:
        """Stop being the owner; harmless when the lease is stale."""
        found = self._open().streams.get(lease.stream)
        if found is not None and found.epoch == lease.epoch:
            found.holder, found.owner = None, ""

    async def holder(self, stream: str) -> Held | None:
        """The live owner, if any."""
        found = self._stream(stream)
        return None if found.holder is None else Held(stream=stream, owner=found.owner, epoch=found.epoch)

    # -------------------------------------------------------------------------------------------- blobs

    async def put_blob(self, data: bytes) -> str:
        """Keep the bytes; returns their SHA-256 in hex."""
        digest = hashlib.sha256(data).hexdigest()
        self._open().blobs[digest] = (data, self._clock())
        return digest

    async def get_blob(self, digest: str) -> bytes:
        """The bytes."""
        found = self._open().blobs.get(digest)
        if found is None:
            raise StoreFault(f"The blob {digest!r} is missing.")
        return found[0]

    # ------------------------------------------------------------------------------------------- upkeep

    async def check(self) -> Sequence[str]:
        """Nothing: memory does not rot."""
        self._open()
        return ()

    async def collect(self) -> int:
        """Drop what nothing refers to any more; returns the bytes freed."""
        streams = self._open().streams.values()
        named = {digest for stream in streams for digest in stream.blobs}
        now = self._clock()
        blobs = self._memory.blobs
        old = [d for d, (_, at) in blobs.items() if d not in named and at < now - UNNAMED_AGE]
        freed = sum(len(blobs.pop(digest)[0]) for digest in old)
        for stream in streams:
            for entry in [
                e for e in stream.inbox.values() if e.outcome is not None and e.answered_at < now - ANSWERED_AGE
            ]:
                freed += len(stream.inbox.pop(entry.row.intent_id).row.data)
        return freed

    async def close(self) -> None:
        """Let the leases go, as the end of a process would."""
        self._closed = True
        for stream in self._memory.streams.values():
            if stream.holder is self:
                stream.holder = None
        self._memory.watch.wake_all()

    def twin(self) -> MemoryLog:
        """Another instance on the same memory, as another process would have."""
        return MemoryLog(self._memory, clock=self._clock)

    def _open(self) -> Memory:
        if self._closed:
            raise StoreFault("The log was closed. Open it again.")
        return self._memory

    def _stream(self, stream: str) -> Stream:
        found = self._open().streams.get(stream)
        if found is None:
            raise StoreFault(f"There is no stream {stream!r}. `greenroom tasks` lists what there is.")
        return found

    def _info(self, name: str, stream: Stream) -> StreamInfo:
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
