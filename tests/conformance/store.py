"""Shared parts of the log suites: how to open a store, and short constructors for its content."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
import pytest_asyncio

from greenroom.core.ports.log import (
    ArchiveRow,
    EventBatch,
    InboxRow,
    Lease,
    Log,
    NewEvent,
    Store,
    StoredEvent,
    TakenIntent,
)

T = TypeVar("T")

STREAM = "team-1"
WAIT_TIMEOUT_S = 20.0
"""Seconds after which a wait fails the test."""


OpenLog = Callable[[], Awaitable[Store]]


class AdjustableClock:
    """A clock in seconds that a test can move. It starts at the real time, because files have real ages."""

    def __init__(self) -> None:
        self.offset_s = 0.0

    def __call__(self) -> float:
        """Return the current time."""
        return time.time() + self.offset_s


class StoreCase:
    """Base class of the suites. Subclasses open instances of their store in a folder."""

    async def open_store(self, folder: Path, clock: Callable[[], float]) -> Store:
        """Open an instance. All instances of a test share the data in the folder."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> AdjustableClock:
        """Return the clock of the stores."""
        return AdjustableClock()

    @pytest_asyncio.fixture
    async def open_log(self, tmp_path: Path, clock: AdjustableClock) -> AsyncIterator[OpenLog]:
        """Open instances, and close them after the test."""
        opened: list[Store] = []

        async def one_more() -> Store:
            opened.append(await self.open_store(tmp_path / "home", clock))
            return opened[-1]

        yield one_more
        for log in opened:
            await log.close()

    @pytest_asyncio.fixture
    async def log(self, open_log: OpenLog) -> Store:
        """Return an instance with one empty stream."""
        log = await open_log()
        await log.create(STREAM, 1)
        return log

    @pytest_asyncio.fixture
    async def lease(self, log: Store) -> Lease:
        """Return the lease of that stream."""
        return await acquire_stream(log)


async def acquire_stream(log: Log, stream: str = STREAM, owner: str = "me", *, force: bool = False) -> Lease:
    """Acquire the stream. Fail if it is not free."""
    lease = await log.acquire(stream, owner, force=force)
    assert isinstance(lease, Lease)
    return lease


def events(count: int, text: str = "e") -> list[NewEvent]:
    """Build `count` new events."""
    return [NewEvent(at=1000 + n, type="Tested", data=f"{text}{n}".encode()) for n in range(count)]


def make_archive_row(key: str, version: int, *, kind: str = "step", owner: str = "thread-1") -> ArchiveRow:
    """Build the archive row of a record that left the team state."""
    return ArchiveRow(kind=kind, key=key, owner=owner, version=version, data=f"{key}@{version}".encode())


def intent(intent_id: str) -> InboxRow:
    """Build an intent for the inbox."""
    return InboxRow(intent_id=intent_id, by="someone", data=f"do {intent_id}".encode(), put_at=5)


def batch(
    lease: Lease,
    expected: int,
    count: int = 1,
    *,
    text: str = "e",
    name: str = "",
    archive: Sequence[ArchiveRow] = (),
    taken: Sequence[str] = (),
    blobs: Sequence[str] = (),
) -> EventBatch:
    """Build a batch of new events by the owner of the lease."""
    return EventBatch(
        stream=lease.stream,
        expected_version=expected,
        epoch=lease.epoch,
        batch=name or f"{text}-{expected}",
        events=events(count, text),
        archive=archive,
        taken=[TakenIntent(intent_id=intent_id, outcome=f"done {intent_id}".encode()) for intent_id in taken],
        blobs=blobs,
    )


async def read_all_events(log: Log, stream: str = STREAM, after: int = 0, upto: int | None = None) -> list[StoredEvent]:
    """Read all events of a stream."""
    return [event async for page in log.read(stream, after, upto) for event in page]


async def finish(pages: AsyncIterator[object]) -> None:
    """Stop following."""
    if isinstance(pages, AsyncGenerator):
        await pages.aclose()


async def wait_soon(what: Awaitable[T]) -> T:
    """Wait, but at most `WAIT_TIMEOUT_S` seconds."""
    return await asyncio.wait_for(what, WAIT_TIMEOUT_S)
