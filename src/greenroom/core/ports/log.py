"""The durable log: streams of events, one per team, with snapshots, archive, inbox and lease beside them.

An append is one transaction: events, the archive rows they make, the inbox rows they took. What is acknowledged is on
disk. Nobody but the owner appends: everybody else puts intents into the inbox.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from greenroom.core.base.records import record


class StoredEvent(NamedTuple):
    """An encoded event as it lies in the log. Versions count from 1 without holes; `ends` marks a commit's last one."""

    version: int
    at: int
    type: str
    data: bytes
    ends: bool = True


class NewEvent(NamedTuple):
    """An encoded event on its way into the log. `ends` is for copies: the last one of an append ends it anyway."""

    at: int
    type: str
    data: bytes
    ends: bool = False


class ArchiveRow(NamedTuple):
    """An encoded record that left the world. `version` is that of the event that moved it: no two rows share one."""

    kind: str
    key: str
    owner: str
    version: int
    data: bytes


@record
class TakenIntent:
    """An inbox row that this append takes, with the answer its sender will read."""

    intent_id: str
    outcome: bytes


@record
class Append:
    """One batch for one stream: all of it or nothing. `questions` is how many wait for a person after it; None when
    that is as it was before."""

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
class Head:
    """Where a stream stands: its version, and who wrote the newest batch."""

    version: int
    epoch: int
    batch: str


@record
class StreamInfo:
    """A stream as `tasks` and `du` list it. `owner` is the live owner, if any; sizes are in bytes.

    `questions` is how many wait for a person there; None when nobody has counted them.
    """

    stream: str
    created_at: int
    head: Head
    owner: str | None
    event_bytes: int
    archive_bytes: int
    blob_bytes: int
    questions: int | None = None


@record
class InboxRow:
    """An intent that somebody else asks the owner for."""

    intent_id: str
    by: str
    data: bytes
    put_at: int


@record
class Lease:
    """The right to append to a stream until somebody gets a higher epoch."""

    stream: str
    owner: str
    epoch: int


@record
class Held:
    """Somebody else, alive, owns the stream."""

    stream: str
    owner: str
    epoch: int


@record
class Snapshot:
    """An encoded world at a version. `fingerprint` names the reducers that made it."""

    version: int
    fingerprint: str
    data: bytes


class Log(Protocol):
    """The one durable truth. Every method may raise `StoreFault`; writers also `StoreFull` or `CommitUnknown`."""

    async def create(self, stream: str, at: int) -> bool:
        """Make an empty stream; False when it exists already."""
        ...

    async def streams(self) -> Sequence[StreamInfo]:
        """All streams, oldest first."""
        ...

    async def forget(self, stream: str) -> None:
        """Delete a stream with everything beside it. Refused with `StaleOwner` while somebody else owns it."""
        ...

    async def append(self, batch: Append) -> int:
        """Write the batch and return the new version; raises `StaleOwner` when epoch or version are not current."""
        ...

    async def head(self, stream: str) -> Head:
        """Where the stream stands; version 0 when it is empty. `StoreFault` when there is no such stream."""
        ...

    def read(self, stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[Sequence[StoredEvent]]:
        """The events with after < version <= upto, in order, in pages."""
        ...

    def tail(self, stream: str, after: int = 0) -> AsyncIterator[Sequence[StoredEvent]]:
        """Like `read`, then the new ones as they are committed, by whichever process; never ends by itself."""
        ...

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        """Keep this snapshot instead of all older ones of the stream."""
        ...

    async def load_snapshot(self, stream: str, fingerprint: str, upto: int | None = None) -> Snapshot | None:
        """The newest snapshot made by these reducers, not newer than `upto`."""
        ...

    async def archived(
        self, stream: str, kind: str, *, owner: str | None = None, after: int = 0, limit: int = 1000
    ) -> Sequence[ArchiveRow]:
        """Archive rows of a kind (of one owner), by version."""
        ...

    async def chain(self, stream: str, version: int, limit: int = 1000) -> Sequence[StoredEvent]:
        """The event at `version` and those that the field `previous` of their data leads back to, oldest first."""
        ...

    async def pick(self, stream: str, versions: Sequence[int]) -> Sequence[StoredEvent]:
        """The events at these versions, by version."""
        ...

    async def newest(self, stream: str, type_: str, field: str, value: str) -> StoredEvent | None:
        """The newest event of this type whose data have this text in this field. The store looks, from the end on."""
        ...

    async def find(self, stream: str, kind: str, key: str) -> ArchiveRow | None:
        """One archive row."""
        ...

    async def rebuild_archive(self, stream: str, rows: AsyncIterator[Sequence[ArchiveRow]]) -> int:
        """Replace the stream's archive by these rows, at once; returns how many."""
        ...

    async def put(self, stream: str, row: InboxRow) -> bool:
        """Put an intent into the inbox; False when this intent id was there before."""
        ...

    async def waiting(self, stream: str) -> Sequence[InboxRow]:
        """The inbox rows that nobody took yet, oldest first."""
        ...

    def arrivals(self, stream: str) -> AsyncIterator[Sequence[InboxRow]]:
        """The rows not yet taken, now and whenever there are new ones; never ends by itself."""
        ...

    async def outcome(self, stream: str, intent_id: str) -> bytes | None:
        """The answer to an intent, once the owner took it."""
        ...

    async def answer(self, stream: str, intent_id: str) -> bytes:
        """Wait for the answer to an intent."""
        ...

    async def acquire(
        self, stream: str, owner: str, *, force: bool = False, made_at: int | None = None
    ) -> Lease | Held:
        """Become the owner, or hear who is: whoever owns it and lives keeps it, even from a second try of its own.

        With `force` it is taken all the same: the next append with the older lease is refused. With `made_at` the
        stream is made first if it is not there: its first lease has epoch 1.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Stop being the owner; harmless when the lease is stale."""
        ...

    async def holder(self, stream: str) -> Held | None:
        """The live owner, if any."""
        ...

    async def check(self) -> Sequence[str]:
        """What is wrong with the store, one sentence each; nothing when all is well."""
        ...

    async def collect(self) -> int:
        """Drop what nothing refers to any more (blobs, answered inbox rows); returns the bytes freed."""
        ...

    async def close(self) -> None:
        """Let everything go; acknowledged work is on disk already."""
        ...


class Blobs(Protocol):
    """Large payloads by content: durable before the event that names them."""

    async def put_blob(self, data: bytes) -> str:
        """Keep the bytes; returns their SHA-256 in hex."""
        ...

    async def get_blob(self, digest: str) -> bytes:
        """The bytes; `StoreFault` when they are missing or not what the digest says."""
        ...


class Store(Log, Blobs, Protocol):
    """Both in one place."""
