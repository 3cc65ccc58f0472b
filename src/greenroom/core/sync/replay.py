"""Reading a log back: the world at any version, and the archive made anew."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence

from greenroom.core.base.errors import Refused, Rejected, StoreFault
from greenroom.core.base.ids import StepId
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.codec import (
    decode_event,
    decode_world,
    encode_archived,
    encode_event,
    encode_world,
    fingerprint,
)
from greenroom.core.ports.log import Append, ArchiveRow, Lease, Log, NewEvent, Snapshot, StoredEvent
from greenroom.core.rules.decide import decide
from greenroom.core.rules.draft import SYSTEM
from greenroom.core.rules.intents import ForkTeam
from greenroom.core.state.archive import archived
from greenroom.core.state.events import Event
from greenroom.core.state.fold import fold
from greenroom.core.state.step import Step, StepEnded, StepQueued, ended, remembered
from greenroom.core.state.world import NOWHERE, World


@record
class Replayed:
    """A world and the version it is of. `tail` is how many events were folded onto a snapshot."""

    world: World
    version: int
    tail: int


async def replay(log: Log, stream: str, upto: int | None = None, *, snapshots: bool = True) -> Replayed:
    """The world at `upto` (or now): the newest fitting snapshot and the events after it."""
    world, version = await _begin(log, stream, upto) if snapshots else (NOWHERE, 0)
    tail = 0
    async for page in log.read(stream, after=version, upto=upto):
        for stored in page:
            world = fold(world, _decoded(stored, stream))
            version = stored.version
            tail += 1
    return Replayed(world=world, version=version, tail=tail)


def _decoded(stored: StoredEvent, stream: str) -> Event:
    try:
        return decode_event(stored)
    except StoreFault as fault:
        raise StoreFault(f"Team {stream}: {fault}") from fault


async def _begin(log: Log, stream: str, upto: int | None) -> tuple[World, int]:
    """Where to begin. A snapshot only saves time: one that cannot be read is as good as none."""
    snapshot = await log.load_snapshot(stream, fingerprint(), upto)
    if snapshot is None:
        return NOWHERE, 0
    try:
        return decode_world(snapshot.data), snapshot.version
    except StoreFault as fault:
        logging.getLogger(__name__).warning("%s is read from its first event on: %s", stream, fault)
        return NOWHERE, 0


async def fork_log(log: Log, source: str, lease: Lease, fork: ForkTeam, *, at: int | None, now: int) -> int:
    """Begin an empty stream as a copy of another one, in one append; returns the version that it was forked at.

    Only the end of a commit is a moment that ever was: `at` is rounded down to one.
    """
    copied, whole = list[NewEvent](), 0
    async for page in log.read(source, upto=at):
        for stored in page:
            copied.append(NewEvent(stored.at, stored.type, stored.data, stored.ends))
            whole = len(copied) if stored.ends else whole
    del copied[whole:]
    world, blobs = NOWHERE, list[str]()
    for number, new in enumerate(copied, start=1):
        event = decode_event(StoredEvent(number, new.at, new.type, new.data))
        world = fold(world, event)
        blobs += event.blobs if isinstance(event, StepEnded) else ()
    decided = decide(world, evolve(fork, origin=evolve(fork.origin, version=whole)), by=SYSTEM, now=now)
    if isinstance(decided, Rejected):
        raise Refused(decided)
    events = [*copied, *(encode_event(event) for event in decided.events)]
    await log.append(
        Append(stream=lease.stream, expected_version=0, epoch=lease.epoch, batch="fork", events=events, blobs=blobs)
    )
    return whole


def snapshot_of(world: World, version: int) -> Snapshot:
    """A snapshot to save. The world does not change, so this may run in any thread."""
    return Snapshot(version=version, fingerprint=fingerprint(), data=encode_world(world))


async def ended_steps(log: Log, stream: str, last: int, since: int) -> Sequence[Step]:
    """The steps of a thread that ended at version `since` or later, the last one at `last`; oldest first."""
    found: list[Step] = []
    while last >= max(since, 1):
        back = [(stored.version, decode_event(stored)) for stored in await log.chain(stream, last)]
        ends = [(version, event) for version, event in back if isinstance(event, StepEnded) and version >= since]
        picked = await log.pick(stream, [end.queued for _, end in ends])
        begins = {stored.version: decode_event(stored) for stored in picked}
        page = [(begins.get(end.queued), end, version) for version, end in ends]
        found[:0] = [remembered(begin, end, at) for begin, end, at in page if isinstance(begin, StepQueued)]
        last = ends[0][1].previous
    return found


async def ended_step(log: Log, stream: str, name: StepId) -> Step | None:
    """One ended step of a team, wherever in it; None when none of that name has ended. Nothing is replayed."""
    stored = await log.newest(stream, StepEnded.__name__, "step_id", name)
    end = decode_event(stored) if stored is not None else None
    if stored is None or not isinstance(end, StepEnded):
        return None
    begins = [decode_event(one) for one in await log.pick(stream, [end.queued])]
    return next((remembered(one, end, stored.version) for one in begins if isinstance(one, StepQueued)), None)


class StepHistory:
    """All ended steps of a team, oldest first. An event is folded once, however often they are read."""

    def __init__(self, log: Log, stream: str) -> None:
        self._log = log
        self._stream = stream
        self._world = NOWHERE
        self._version = 0
        self._steps: list[Step] = []
        self._reading = asyncio.Lock()

    async def read(self) -> Sequence[Step]:
        """All steps that have ended by now."""
        async with self._reading:
            async for page in self._log.read(self._stream, self._version):
                for stored in page:
                    self._take(stored)
        return tuple(self._steps)

    def _take(self, stored: StoredEvent) -> None:
        event = decode_event(stored)
        if isinstance(event, StepEnded):
            self._steps.append(ended(self._world.steps[event.step_id], event, stored.version))
        self._world = fold(self._world, event)
        self._version = stored.version


async def rebuild_archive(log: Log, stream: str) -> int:
    """Make the query tables of a stream anew from its log; returns how many rows they have."""
    return await log.rebuild_archive(stream, _archive_of(log, stream))


async def _archive_of(log: Log, stream: str) -> AsyncIterator[Sequence[ArchiveRow]]:
    world = NOWHERE
    async for page in log.read(stream):
        rows = []
        for stored in page:
            event = decode_event(stored)
            row = archived(world, event)
            if row is not None and row.kind != "step":
                rows.append(encode_archived(row, stored.version))
            world = fold(world, event)
        yield rows
