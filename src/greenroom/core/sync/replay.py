"""Read a log: the team state at any version, ended steps, and the rebuilt archive."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence

from greenroom.core.base.errors import RefusedError, Rejection, StoreFault
from greenroom.core.base.ids import StepId
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.codec import (
    compute_fingerprint,
    decode_event,
    decode_state,
    encode_archived,
    encode_event,
    encode_state,
)
from greenroom.core.ports.log import ArchiveRow, EventBatch, Lease, Log, NewEvent, StateSnapshot, StoredEvent
from greenroom.core.rules.decide import decide
from greenroom.core.rules.draft import SYSTEM
from greenroom.core.rules.intents import ForkTeam
from greenroom.core.state.archive import build_archive_row
from greenroom.core.state.events import Event
from greenroom.core.state.reducer import reduce
from greenroom.core.state.step import Step, StepEnded, StepQueued, apply_end, list_blobs, rebuild_step
from greenroom.core.state.team_state import EMPTY_STATE, TeamState


@record
class ReplayResult:
    """A team state and its version. `tail` is the number of events folded onto a snapshot."""

    state: TeamState
    version: int
    tail: int


async def replay(log: Log, stream: str, upto: int | None = None, *, snapshots: bool = True) -> ReplayResult:
    """Return the team state at `upto`, or now, from the newest usable snapshot and the events after it."""
    state, version = await _load_start(log, stream, upto) if snapshots else (EMPTY_STATE, 0)
    tail = 0
    async for page in log.read(stream, after=version, upto=upto):
        for stored in page:
            state = reduce(state, _decode_event(stored, stream))
            version = stored.version
            tail += 1
    return ReplayResult(state=state, version=version, tail=tail)


def _decode_event(stored: StoredEvent, stream: str) -> Event:
    try:
        return decode_event(stored)
    except StoreFault as fault:
        raise StoreFault("home.team_fault", team=stream, fault=fault) from fault


async def _load_start(log: Log, stream: str, upto: int | None) -> tuple[TeamState, int]:
    """Return the state and version to start from. An unreadable snapshot is ignored: snapshots only save time."""
    snapshot = await log.load_snapshot(stream, compute_fingerprint(), upto)
    if snapshot is None:
        return EMPTY_STATE, 0
    try:
        return decode_state(snapshot.data), snapshot.version
    except StoreFault as fault:
        logging.getLogger(__name__).warning("%s is replayed from its first event: %s", stream, fault)
        return EMPTY_STATE, 0


async def fork_log(log: Log, source: str, lease: Lease, fork: ForkTeam, *, at: int | None, now: int) -> int:
    """Start an empty stream as a copy of another, in one append. Return the version that it was forked at.

    A fork starts at the end of a commit: `at` is rounded down to one.
    """
    copied, whole = list[NewEvent](), 0
    async for page in log.read(source, upto=at):
        for stored in page:
            copied.append(NewEvent(stored.at, stored.type, stored.data, stored.ends))
            whole = len(copied) if stored.ends else whole
    del copied[whole:]
    state, blobs = EMPTY_STATE, list[str]()
    for number, new in enumerate(copied, start=1):
        event = decode_event(StoredEvent(number, new.at, new.type, new.data))
        state = reduce(state, event)
        blobs += list_blobs(event)
    decided = decide(state, evolve(fork, origin=evolve(fork.origin, version=whole)), by=SYSTEM, now=now)
    if isinstance(decided, Rejection):
        raise RefusedError(decided)
    events = [*copied, *(encode_event(event) for event in decided.events)]
    await log.append(
        EventBatch(stream=lease.stream, expected_version=0, epoch=lease.epoch, batch="fork", events=events, blobs=blobs)
    )
    return whole


def make_snapshot(state: TeamState, version: int) -> StateSnapshot:
    """Make a snapshot to save. The state is immutable, so this may run in any thread."""
    return StateSnapshot(version=version, fingerprint=compute_fingerprint(), data=encode_state(state))


async def read_ended_steps(log: Log, stream: str, last: int, since: int) -> Sequence[Step]:
    """Return a thread's steps that ended at version `since` or later, oldest first. `last` is the last one's end."""
    steps: list[Step] = []
    while last >= max(since, 1):
        back = [(stored.version, decode_event(stored)) for stored in await log.chain(stream, last)]
        ends = [(version, event) for version, event in back if isinstance(event, StepEnded) and version >= since]
        picked = await log.pick(stream, [end.queued for _, end in ends])
        begins = {stored.version: decode_event(stored) for stored in picked}
        page = [(begins.get(end.queued), end, version) for version, end in ends]
        steps[:0] = [rebuild_step(begin, end, at) for begin, end, at in page if isinstance(begin, StepQueued)]
        last = ends[0][1].previous
    return steps


async def read_ended_step(log: Log, stream: str, name: StepId) -> Step | None:
    """Return an ended step of a team by id, or None. Nothing is replayed."""
    stored = await log.newest(stream, StepEnded.__name__, "step_id", name)
    end = decode_event(stored) if stored is not None else None
    if stored is None or not isinstance(end, StepEnded):
        return None
    begins = [decode_event(event) for event in await log.pick(stream, [end.queued])]
    return next((rebuild_step(event, end, stored.version) for event in begins if isinstance(event, StepQueued)), None)


class StepHistory:
    """All ended steps of a team, oldest first. Each event is folded once, even over several reads."""

    def __init__(self, log: Log, stream: str) -> None:
        self._log = log
        self._stream = stream
        self._state = EMPTY_STATE
        self._version = 0
        self._steps: list[Step] = []
        self._reading = asyncio.Lock()

    async def read(self) -> Sequence[Step]:
        """Return all steps that have ended by now."""
        async with self._reading:
            async for page in self._log.read(self._stream, self._version):
                for stored in page:
                    self._add_event(stored)
        return tuple(self._steps)

    def _add_event(self, stored: StoredEvent) -> None:
        event = decode_event(stored)
        if isinstance(event, StepEnded):
            self._steps.append(apply_end(self._state.steps[event.step_id], event, stored.version))
        self._state = reduce(self._state, event)
        self._version = stored.version


async def rebuild_archive(log: Log, stream: str) -> int:
    """Rebuild a stream's query tables from its log. Return the number of rows."""
    return await log.rebuild_archive(stream, _read_archive_rows(log, stream))


async def _read_archive_rows(log: Log, stream: str) -> AsyncIterator[Sequence[ArchiveRow]]:
    state = EMPTY_STATE
    async for page in log.read(stream):
        rows = []
        for stored in page:
            event = decode_event(stored)
            row = build_archive_row(state, event)
            if row is not None and row.kind != "step":
                rows.append(encode_archived(row, stored.version))
            state = reduce(state, event)
        yield rows
