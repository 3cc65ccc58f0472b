"""What the suites for logs share: how a store is opened, and short ways to make what goes into it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
import pytest_asyncio

from greenroom.core.ports.log import Append, ArchiveRow, InboxRow, Lease, Log, NewEvent, Store, StoredEvent, TakenIntent

T = TypeVar("T")

STREAM = "team-1"
PATIENCE = 20.0
"""Seconds that a wait may take before the test fails."""


OpenLog = Callable[[], Awaitable[Store]]


class Hands:
    """A clock in seconds that a test can turn. It starts at the real time: files have real ages."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        """Now."""
        return time.time() + self.ahead


class StoreCase:
    """Inherit from a suite, and say how to open one more instance of the store in this folder."""

    async def open_store(self, folder: Path, clock: Callable[[], float]) -> Store:
        """Open an instance; all instances of one test share the folder's data."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> Hands:
        """The stores' clock."""
        return Hands()

    @pytest_asyncio.fixture
    async def open_log(self, tmp_path: Path, clock: Hands) -> AsyncIterator[OpenLog]:
        """Opens instances and closes them after the test."""
        opened: list[Store] = []

        async def one_more() -> Store:
            opened.append(await self.open_store(tmp_path / "home", clock))
            return opened[-1]

        yield one_more
        for log in opened:
            await log.close()

    @pytest_asyncio.fixture
    async def log(self, open_log: OpenLog) -> Store:
        """One instance, with one empty stream."""
        log = await open_log()
        await log.create(STREAM, 1)
        return log

    @pytest_asyncio.fixture
    async def lease(self, log: Store) -> Lease:
        """The right to append to that stream."""
        return await own(log)


async def own(log: Log, stream: str = STREAM, owner: str = "me", *, force: bool = False) -> Lease:
    """Acquire the stream, which must be free."""
    lease = await log.acquire(stream, owner, force=force)
    assert isinstance(lease, Lease)
    return lease


def events(count: int, text: str = "e") -> list[NewEvent]:
    """That many new events."""
    return [NewEvent(at=1000 + n, type="Tested", data=f"{text}{n}".encode()) for n in range(count)]


def moved(key: str, version: int, *, kind: str = "step", owner: str = "thread-1") -> ArchiveRow:
    """A record that left the world."""
    return ArchiveRow(kind=kind, key=key, owner=owner, version=version, data=f"{key}@{version}".encode())


def intent(intent_id: str) -> InboxRow:
    """An intent for the inbox."""
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
) -> Append:
    """A batch of new events by the lease's owner."""
    return Append(
        stream=lease.stream,
        expected_version=expected,
        epoch=lease.epoch,
        batch=name or f"{text}-{expected}",
        events=events(count, text),
        archive=archive,
        taken=[TakenIntent(intent_id=one, outcome=f"done {one}".encode()) for one in taken],
        blobs=blobs,
    )


async def everything(log: Log, stream: str = STREAM, after: int = 0, upto: int | None = None) -> list[StoredEvent]:
    """All events of a stream."""
    return [event async for page in log.read(stream, after, upto) for event in page]


async def finish(pages: AsyncIterator[object]) -> None:
    """Stop following."""
    if isinstance(pages, AsyncGenerator):
        await pages.aclose()


async def soon(what: Awaitable[T]) -> T:
    """Wait, but not for ever."""
    return await asyncio.wait_for(what, PATIENCE)
