"""Reads the states of runs for the server: the newest one is folded on, past ones come from near checkpoints."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypedDict, TypeVar

from greenroom.app.messages import translate
from greenroom.app.runtime import Runtime
from greenroom.app.words import describe_event, find_subtask_name
from greenroom.core.base.errors import StoreFault, make_refusal
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.codec import decode_data, decode_event
from greenroom.core.ports.log import StoredEvent
from greenroom.core.state.events import Event
from greenroom.core.state.reducer import reduce
from greenroom.core.state.step import Step, StepEnded, StepQueued, StepStarted, rebuild_step
from greenroom.core.state.team_state import EMPTY_STATE, TeamState
from greenroom.http.run_index import IndexedEvent, RunIndex, read_subject
from greenroom.http.schemas import EventRow

MAX_RUNS: Final = 64
"""Runs whose newest state stays in memory."""

MAX_CHECKPOINTS: Final = 64
MAX_FOLD: Final = 2_000
"""Events that are folded onto a checkpoint rather than onto a snapshot of the log."""

STEP_ENDS: Final = frozenset({"StepEnded"})
STEP_STARTS: Final = frozenset({"StepStarted"})
MARK_LEVELS: Final[Mapping[str, EventLevel]] = {"✓": "good", "✗": "bad", "!": "bad", "?": "wait"}

T = TypeVar("T")
EventLevel = Literal["info", "good", "bad", "wait"]


class EventFields(TypedDict):
    """The fields of an `EventRow`, without its data."""

    run: str
    version: int
    at: int
    type: str
    agent: str
    subtask: str
    step: str
    text: str
    level: EventLevel


class StateReader:
    """The states and indexes of all runs of a home, now and at past versions."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._newest: OrderedDict[TeamId, TeamState] = OrderedDict()
        self._past: OrderedDict[TeamId, list[TeamState]] = OrderedDict()
        self._indexes: OrderedDict[TeamId, RunIndex] = OrderedDict()
        self._locks: dict[TeamId, asyncio.Lock] = {}

    async def find_run(self, name: str) -> TeamId:
        """Return the run with this id. Raise `RefusedError` if there is none."""
        try:
            head = await self._runtime.log.head(name)
        except StoreFault:
            head = None
        if head is None or not head.version:
            raise make_refusal("unknown_run", translate("server.unknown_run", run=name[:80]))
        return TeamId(name)

    async def read(self, run: TeamId, at: int | None = None) -> TeamState:
        """Return the state of a run, now or at a version. Raise `RefusedError` for a version that does not exist."""
        newest = self._newest.get(run)
        if at is not None and newest is not None and at < newest.version:
            return await self._read_past(run, at)
        async with self._locks.setdefault(run, asyncio.Lock()):
            state = self._newest.get(run) or await self._runtime.state(run)
            state = await self._fold(run, state, None)
            self.keep_newest(run, state)
        return state if at is None or at == state.version else await self._read_past(run, at)

    def keep_newest(self, run: TeamId, state: TeamState) -> None:
        """Keep a newer state that was folded elsewhere."""
        known = self._newest.get(run)
        if known is None or known.version < state.version:
            _keep(self._newest, run, state)

    async def _read_past(self, run: TeamId, at: int) -> TeamState:
        """Return a past state, from the nearest state before it that is in memory or in the log."""
        checkpoints = self._past.setdefault(run, [])
        near = max((state for state in checkpoints if state.version <= at), key=_version_of, default=None)
        if near is None or at - near.version > MAX_FOLD or at > self._newest[run].version:
            state = await self._runtime.state(run, at)
        else:
            state = await self._fold(run, near, at)
        _keep(self._past, run, [*(kept for kept in checkpoints if kept.version != state.version), state])
        del self._past[run][:-MAX_CHECKPOINTS]
        return state

    async def _fold(self, run: TeamId, state: TeamState, upto: int | None) -> TeamState:
        async for page in self._runtime.log.read(run, state.version, upto):
            for stored in page:
                state = reduce(state, decode_event(stored))
        return state

    async def index(self, run: TeamId) -> RunIndex:
        """Return the index of a run, up to its newest event. It is read once, then continued."""
        index = self._indexes.setdefault(run, RunIndex())
        async with self._locks.setdefault(run, asyncio.Lock()):
            async for page in self._runtime.log.read(run, index.version):
                for stored in page:
                    index.add(stored)
        _keep(self._indexes, run, index)
        return index

    async def describe(self, run: TeamId, versions: Sequence[int], language: str) -> list[EventRow]:
        """Return the events at these versions, in their order, as lines in a language."""
        if not versions:
            return []
        state, wanted, rows = await self._read_before(run, versions[0]), set(versions), list[EventRow]()
        async for page in self._runtime.log.read(run, versions[0] - 1, versions[-1]):
            for stored in page:
                event = decode_event(stored)
                if stored.version in wanted:
                    rows.append(
                        EventRow(
                            **describe_row(run, state, stored, event, language), data=dict(decode_data(stored.data))
                        )
                    )
                state = reduce(state, event)
        return rows

    async def _read_before(self, run: TeamId, version: int) -> TeamState:
        return EMPTY_STATE if version <= 1 else await self.read(run, version - 1)

    async def find_step(self, run: TeamId, name: StepId, at: int) -> Step | None:
        """Return a step as it was at a version, open or ended; None if there was none."""
        state = await self.read(run, at)
        if name in state.steps:
            return state.steps[name]
        agent, _, ordinal = name.rpartition("#")
        if not ordinal.isdigit() or not ordinal.isascii() or not 0 < int(ordinal) < 2**32:
            return None
        index = await self.index(run)
        ends = index.rows_back(last=at, types=STEP_ENDS, agent=agent, step=int(ordinal))
        return next(iter(await self.read_steps(run, [row for row, _ in zip(ends, range(1), strict=False)])), None)

    async def read_steps(self, run: TeamId, ends: Sequence[IndexedEvent]) -> list[Step]:
        """Return the steps that these events ended, in the same order, with the start of their last attempt."""
        index, log = await self.index(run), self._runtime.log
        stored_ends = {
            stored.version: decode_event(stored) for stored in await log.pick(run, [row.version for row in ends])
        }
        queued = [event.queued for event in stored_ends.values() if isinstance(event, StepEnded)]
        stored_begins = {stored.version: decode_event(stored) for stored in await log.pick(run, queued)}
        started = {
            row.version: next(
                index.rows_back(last=row.version, types=STEP_STARTS, agent=row.agent, step=row.step), None
            )
            for row in ends
        }
        wanted = [row.version for row in started.values() if row is not None]
        stored_starts = {stored.version: decode_event(stored) for stored in await log.pick(run, wanted)}
        steps = []
        for row in ends:
            end = stored_ends.get(row.version)
            begin = stored_begins.get(end.queued) if isinstance(end, StepEnded) else None
            if isinstance(end, StepEnded) and isinstance(begin, StepQueued):
                step, begun = rebuild_step(begin, end, row.version), started[row.version]
                start = stored_starts.get(begun.version) if begun is not None else None
                steps.append(
                    evolve(step, started_at=start.at, terms=start.terms) if isinstance(start, StepStarted) else step
                )
        return steps


def describe_row(run: TeamId, state: TeamState, stored: StoredEvent, event: Event, language: str) -> EventFields:
    """Return the fields of an event's row without its data. `state` is the state before it."""
    summary, subject = describe_event(state, event, language), read_subject(stored)
    level: EventLevel = "bad" if subject.state == "failed" else MARK_LEVELS.get(summary.mark, "info")
    return EventFields(
        run=run,
        version=stored.version,
        at=stored.at,
        type=stored.type,
        agent=summary.who or subject.agent,
        subtask=find_subtask_name(state, event),
        step=subject.step,
        text=summary.text,
        level=level,
    )


def _version_of(state: TeamState) -> int:
    return state.version


def _keep(cache: OrderedDict[TeamId, T], run: TeamId, value: T) -> None:
    """Put a value into a cache as its newest, and drop the oldest of too many."""
    cache[run] = value
    cache.move_to_end(run)
    while len(cache) > MAX_RUNS:
        cache.popitem(last=False)
