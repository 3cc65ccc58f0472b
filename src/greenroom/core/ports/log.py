"""The durable log: one event stream per team, with snapshots, archive, inbox and lease.

An append is one transaction: events, their archive rows, and the inbox rows that it takes. Acknowledged data is on
disk. Only the owner appends; all others put intents into the inbox.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from greenroom.core.base.records import Record, record


class StoredEvent(Record, frozen=True):
    """An encoded event in the log. Versions count from 1 without gaps; `ends` marks the last event of a commit."""

    version: int
    at: int
    type: str
    data: bytes
    ends: bool = True


class NewEvent(Record, frozen=True):
    """An encoded event to append. `ends` is for copies: the last event of an append always ends a commit."""

    at: int
    type: str
    data: bytes
    ends: bool = False


class ArchiveRow(Record, frozen=True):
    """An encoded record that left the team state. `version` is that of the event that moved it, and unique."""

    kind: str
    key: str
    owner: str
    version: int
    data: bytes


@record
class TakenIntent:
    """An inbox row that this append takes, with the answer for its sender."""

    intent_id: str
    outcome: bytes


@record
class EventBatch:
    """A batch for one stream, appended whole or not at all. `questions` is how many approval requests wait for a person
    afterwards; None if unchanged."""

    stream: str
    expected_version: int
    epoch: int
    batch: str
    events: Sequence[NewEvent] = ()
    archive: Sequence[ArchiveRow] = ()
    taken: Sequence[TakenIntent] = ()
    blobs: Sequence[str] = ()
    questions: int | None = None


@record
class StreamHead:
    """The newest version of a stream, and the batch that wrote it."""

    version: int
    epoch: int
    batch: str


@record
class StreamInfo:
    """A stream, as `runs` and `du` list it. `owner` is the live owner, if any; sizes are in bytes.

    `questions` is how many approval requests wait for a person; None if unknown.
    """

    stream: str
    created_at: int
    head: StreamHead
    owner: str | None
    event_bytes: int
    archive_bytes: int
    blob_bytes: int
    questions: int | None = None


@record
class InboxRow:
    """An intent that another process submits to the owner."""

    intent_id: str
    by: str
    data: bytes
    put_at: int


@record
class Lease:
    """The right to append to a stream, until an owner with a higher epoch takes over."""

    stream: str
    owner: str
    epoch: int


@record
class LeaseHolder:
    """The live owner of a stream."""

    stream: str
    owner: str
    epoch: int


@record
class StateSnapshot:
    """An encoded team state at a version. `fingerprint` identifies the reducers that made it."""

    version: int
    fingerprint: str
    data: bytes


class Log(Protocol):
    """The durable log. Every method may raise `StoreFault`; writing ones also `StoreFull` or `CommitUnknown`."""

    async def create(self, stream: str, at: int) -> bool:
        """Create an empty stream. Return False if it exists."""
        ...

    async def streams(self) -> Sequence[StreamInfo]:
        """List all streams, oldest first."""
        ...

    async def forget(self, stream: str) -> None:
        """Delete a stream and everything that belongs to it. Raise `StaleOwner` while another process owns it."""
        ...

    async def append(self, batch: EventBatch) -> int:
        """Append a batch and return the new version. Raise `StaleOwner` if epoch or version are not current."""
        ...

    async def head(self, stream: str) -> StreamHead:
        """Return the stream's head, version 0 if it is empty. Raise `StoreFault` if the stream does not exist."""
        ...

    def read(self, stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[Sequence[StoredEvent]]:
        """Yield the events with after < version <= upto, in order, in pages."""
        ...

    def tail(self, stream: str, after: int = 0) -> AsyncIterator[Sequence[StoredEvent]]:
        """Yield events like `read`, then new ones as any process commits them. Never ends by itself."""
        ...

    async def save_snapshot(self, stream: str, snapshot: StateSnapshot) -> None:
        """Save a snapshot. Those by the same reducers stay, for past states; older ones by others are dropped."""
        ...

    async def load_snapshot(self, stream: str, fingerprint: str, upto: int | None = None) -> StateSnapshot | None:
        """Return the newest snapshot made by these reducers, not newer than `upto`, or None."""
        ...

    async def read_archive(
        self, stream: str, kind: str, *, owner: str | None = None, after: int = 0, limit: int = 1000
    ) -> Sequence[ArchiveRow]:
        """Return archive rows of a kind, optionally of one owner, by version."""
        ...

    async def chain(self, stream: str, version: int, limit: int = 1000) -> Sequence[StoredEvent]:
        """Return the event at `version` and those that the field `previous` leads back to, oldest first."""
        ...

    async def pick(self, stream: str, versions: Sequence[int]) -> Sequence[StoredEvent]:
        """Return the events at these versions, by version."""
        ...

    async def newest(self, stream: str, type_: str, field: str, value: str) -> StoredEvent | None:
        """Return the newest event of this type with this text in a field, or None. The store searches from the end."""
        ...

    async def find(self, stream: str, kind: str, key: str) -> ArchiveRow | None:
        """Return one archive row, or None."""
        ...

    async def rebuild_archive(self, stream: str, rows: AsyncIterator[Sequence[ArchiveRow]]) -> int:
        """Replace the stream's archive by these rows in one transaction. Return their number."""
        ...

    async def put(self, stream: str, row: InboxRow) -> bool:
        """Put an intent into the inbox. Return False if its id is already there."""
        ...

    async def list_inbox(self, stream: str) -> Sequence[InboxRow]:
        """Return the inbox rows not taken yet, oldest first."""
        ...

    def arrivals(self, stream: str) -> AsyncIterator[Sequence[InboxRow]]:
        """Yield the inbox rows not taken yet, now and when new ones arrive. Never ends by itself."""
        ...

    async def outcome(self, stream: str, intent_id: str) -> bytes | None:
        """Return the answer to an intent if the owner has taken it, or None."""
        ...

    async def answer(self, stream: str, intent_id: str) -> bytes:
        """Wait for the answer to an intent."""
        ...

    async def acquire(
        self, stream: str, owner: str, *, force: bool = False, made_at: int | None = None
    ) -> Lease | LeaseHolder:
        """Become the owner, or return the current one. A live owner keeps the stream, even against its own second try.

        With `force` the lease is taken anyway: the next append with the older lease is refused. With `made_at` a
        missing stream is created first; its first lease has epoch 1.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Give up the lease. Has no effect if it is stale."""
        ...

    async def holder(self, stream: str) -> LeaseHolder | None:
        """Return the live owner, or None."""
        ...

    async def check(self) -> Sequence[str]:
        """Return what is wrong with the store, one sentence each; empty if nothing is."""
        ...

    async def collect(self) -> int:
        """Delete unreferenced blobs and answered inbox rows. Return the bytes freed."""
        ...

    async def close(self) -> None:
        """Close the log. Acknowledged data is already on disk."""
        ...


class Blobs(Protocol):
    """Large payloads, addressed by content. A blob is durable before the event that names it."""

    async def put_blob(self, data: bytes) -> str:
        """Store bytes and return their SHA-256 in hex."""
        ...

    async def get_blob(self, digest: str) -> bytes:
        """Return the bytes. Raise `StoreFault` if they are missing or do not match the digest."""
        ...


class Store(Log, Blobs, Protocol):
    """A log and its blobs."""
