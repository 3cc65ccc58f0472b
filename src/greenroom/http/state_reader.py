"""Reads the states of runs for the server: the newest one is folded on, past ones come from near checkpoints.

An index of each run says when every event happened, and of which type and agent it is. It has 22 bytes per event and 44
per attempt, so that a page of a long run is found without reading those before it.
"""

from __future__ import annotations

import asyncio
import re
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from operator import add, attrgetter
from typing import Final, Literal, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct
from msgspec.json import Decoder

from greenroom.app.cost import CostSum, is_priced, sum_costs
from greenroom.app.messages import translate
from greenroom.app.runtime import Runtime
from greenroom.app.words import describe_event, find_subtask_name
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import StoreFault, make_refusal
from greenroom.core.base.ids import StepId, TeamId, WaitingId, agent_of, waiter_of
from greenroom.core.base.records import evolve
from greenroom.core.ports.codec import decode_data, decode_event
from greenroom.core.ports.log import StoredEvent
from greenroom.core.rules.draft import CLIENT
from greenroom.core.state.events import Event
from greenroom.core.state.reducer import reduce
from greenroom.core.state.step import Step, StepEnded, StepQueued, StepStarted, rebuild_step
from greenroom.core.state.team_state import EMPTY_STATE, TeamState
from greenroom.http.schemas import EventLevel, EventRow

MAX_RUNS: Final = 64
"""Runs whose newest state stays in memory."""

MAX_PAST_RUNS: Final = 8
MAX_CHECKPOINTS: Final = 64
"""Runs whose past states stay in memory, and how many of each."""

MAX_FOLD: Final = 2_000
"""Events that are folded onto a checkpoint rather than onto a snapshot of the log."""

STEP_ENDS: Final = frozenset({"StepEnded"})
MARKS: Final = frozenset({"ApprovalRequested", "ApprovalAnswered", "TaskEnded"})
ENDS: Final = frozenset({"SubtaskEnded", "StepEnded"})
STEP_STARTS: Final = frozenset({"StepStarted"})
MARK_LEVELS: Final[Mapping[str, EventLevel]] = {"✓": "good", "✗": "bad", "!": "bad", "?": "wait"}

K = TypeVar("K")
T = TypeVar("T")
WITH_MODEL: Final = 1
JUDGED: Final = 2
WAITING: Final = 4
"""Flags of an event: an attempt calls a model; a step's result has a verdict or a tree of files; a sender waits."""

_JUDGED: Final = re.compile(rb'"(tree|verdict)":').search


class _Spent(Struct, gc=False):
    money: int = 0
    tokens: int = 0


class _Sent(Struct, gc=False):
    sender_id: str = ""
    waiting: tuple[str, ...] | None = None


class _Terms(Struct, gc=False):
    effect: str = ""
    model: str = ""
    priced: bool = True


class _Work(Struct, gc=False):
    executor: str = ""
    intention: str = ""
    text_content: str = ""


class _Result(Struct, gc=False):
    usage: object = None


class EventSubject(Struct, gc=False):
    """What an event is about: the fields that most events share."""

    agent_id: str = ""
    step_id: str = ""
    thread_id: str = ""
    approval_id: str = ""
    waiting_id: str = ""
    subtask_id: str = ""
    state: str = ""
    queued: int = 0
    message: _Sent | None = None
    note: EventSubject | None = None
    work: _Work | None = None
    cause: str | None = None
    message_id: str | None = None
    answers: str | None = None
    terms: _Terms | None = None
    spent: _Spent | None = None
    result: _Result | None = None

    @property
    def is_by_person(self) -> bool:
        """Whether it is a turn that nothing in the run caused and nothing but a text describes, or a person's note."""
        if self.note is not None:
            return self.note.agent_id.partition(":")[0] == CLIENT
        work, is_caused = self.work, bool(self.cause or self.message_id or self.answers)
        is_text = work is not None and bool(work.text_content) and not work.intention and work.executor == "converse"
        return is_text and not is_caused

    @property
    def step(self) -> str:
        """The id of the step that the event is about; empty if it is about none."""
        return self.step_id or self.approval_id.partition("?")[0]

    @property
    def agent(self) -> str:
        """The agent that the event is about; empty if it is about none."""
        if "#" in self.step:
            return agent_of(StepId(self.step))
        if self.message is not None:
            return self.message.sender_id
        if self.note is not None:
            return self.note.agent_id
        if self.waiting_id:
            return waiter_of(WaitingId(self.waiting_id))
        return self.agent_id or self.thread_id.partition("@")[0]


_DECODER: Final = Decoder(EventSubject, strict=False)


def read_subject(stored: StoredEvent) -> EventSubject:
    """Return what an event is about. Nothing else of it is decoded."""
    return _DECODER.decode(stored.data)


class IndexedEvent(NamedTuple):
    """What the index knows about an event. `step` is the number of its agent's step, 0 if it is about none. `subtask`
    is that of an attempt."""

    version: int
    at: int
    type: str
    agent: str
    step: int
    flags: int
    subtask: str


class AttemptSums:
    """What an agent or a subtask has done and spent by each of its attempts."""

    def __init__(self) -> None:
        self._versions = array("I")
        self._sums = array("q", [0] * 5)

    def add(self, version: int, *amounts: int) -> None:
        """Add the ended steps, money, tokens, model calls and unpriced calls of an attempt that ended here."""
        self._versions.append(version)
        self._sums.extend(map(add, self._sums[-5:], amounts))

    def read(self, last: int) -> tuple[int, CostSum]:
        """Return the ended steps up to a version, and what they cost."""
        place = 5 * bisect_right(self._versions, last)
        steps, money, tokens, calls, unpriced = self._sums[place : place + 5]
        return steps, CostSum(calls=calls, spent=Amounts(money=money, tokens=tokens), unpriced=unpriced)

    def forget_costs(self, version: int) -> None:
        """Count from zero again: another run has paid for the earlier calls."""
        _, cost = self.read(version)
        self.add(version, 0, -cost.spent.money, -cost.spent.tokens, -cost.calls, -cost.unpriced)


class RunIndex:
    """The index of one run, up to its version. Rows are added in their order."""

    def __init__(self) -> None:
        self._at = array("q")
        self._kind = array("B")
        self._agent = array("I")
        self._step = array("I")
        self._flags = array("B")
        self._subtask = array("I")
        self._kinds: dict[str, int] = {}
        self._agents: dict[str, int] = {}
        self._sums: dict[tuple[str, str], AttemptSums] = {}
        self._priced: dict[str, bool] = {}
        self._subtasks: dict[str, str] = {}
        self._names: dict[str, int] = {}
        self.released: dict[str, int] = {}
        self.by_person = array("I")  # versions of what a person wrote
        self.marks = array("I")  # versions of the moments worth a look

    @property
    def version(self) -> int:
        """The version of the last event."""
        return len(self._at)

    def add(self, stored: StoredEvent) -> None:
        """Add the next event."""
        fields = read_subject(stored)
        flags = WITH_MODEL if fields.terms is not None and fields.terms.effect == "model" else 0
        flags |= JUDGED if stored.type == "StepEnded" and _JUDGED(stored.data) is not None else 0
        flags |= WAITING if fields.message is not None and fields.message.waiting else 0
        self._at.append(stored.at)
        if stored.type in ("StepQueued", "NotePosted") and fields.is_by_person:
            self.by_person.append(stored.version)
        if stored.type in MARKS or (stored.type in ENDS and fields.state == "failed"):
            self.marks.append(stored.version)
        agent, _, ordinal = fields.step.rpartition("#")
        agent = agent or fields.agent
        self._kind.append(self._kinds.setdefault(stored.type, len(self._kinds)))
        self._agent.append(self._agents.setdefault(agent, len(self._agents)))
        self._step.append(int(ordinal) if ordinal.isdigit() else 0)
        self._flags.append(flags)
        subtask = self._subtasks.get(fields.step_id, "")
        self._subtask.append(self._names.setdefault(subtask, len(self._names)))
        match stored.type:
            case "WaitReleased":
                self.released[fields.waiting_id] = stored.at
            case "StepQueued" if fields.subtask_id:
                self._subtasks[fields.step_id] = fields.subtask_id
            case "StepStarted" if fields.terms is not None and (fields.terms.effect == "model" or fields.terms.model):
                self._priced[fields.step_id] = fields.terms.priced
            case "StepEnded" | "StepInterrupted":
                self._add_attempt(stored, fields, agent, subtask)
            case "TeamForked":
                for sums in self._sums.values():
                    sums.forget_costs(stored.version)
            case _:
                pass

    def _add_attempt(self, stored: StoredEvent, fields: EventSubject, agent: str, subtask: str) -> None:
        """Add what an attempt spent to the sums of its agent and its subtask."""
        spent, usage = fields.spent or _Spent(), fields.result.usage if fields.result is not None else None
        priced, is_end = self._priced.pop(fields.step_id, None), stored.type == "StepEnded"
        is_unpriced = priced is not None and spent.tokens > 0 and not is_priced(usage, priced=priced)
        if is_end:
            self._subtasks.pop(fields.step_id, None)
        for key in (("agent", agent), ("subtask", subtask)) if subtask else (("agent", agent),):
            sums = self._sums.get(key) or self._sums.setdefault(key, AttemptSums())
            sums.add(stored.version, is_end, max(spent.money, 0), max(spent.tokens, 0), priced is not None, is_unpriced)

    def time_of(self, version: int) -> int:
        """Return when an event happened."""
        return self._at[version - 1]

    def find_version(self, at: int) -> int:
        """Return the last version at this time."""
        return bisect_right(self._at, at)

    def rows(
        self, *, first: int = 1, last: int | None = None, types: frozenset[str] = frozenset(), agent: str = ""
    ) -> Iterator[IndexedEvent]:
        """Yield the events from `first` to `last` of these types, or all, of this agent, or all."""
        return self._scan(range(first, min(last or self.version, self.version) + 1), types, agent)

    def rows_back(
        self, *, last: int, types: frozenset[str] = frozenset(), agent: str = "", step: int = 0
    ) -> Iterator[IndexedEvent]:
        """Yield the events up to `last`, newest first, of these types, this agent and its step."""
        return self._scan(range(min(last, self.version), 0, -1), types, agent, step)

    def _scan(self, versions: range, types: frozenset[str], agent: str, step: int = 0) -> Iterator[IndexedEvent]:
        codes = {self._kinds[name] for name in types if name in self._kinds}
        if (types and not codes) or (agent and agent not in self._agents):
            return
        wanted, kinds, agents = self._agents[agent] if agent else -1, list(self._kinds), list(self._agents)
        names = list(self._names)
        for version in versions:
            place = version - 1
            kind, member = self._kind[place], self._agent[place]
            if (codes and kind not in codes) or wanted not in (-1, member) or step not in (0, self._step[place]):
                continue
            figures = self._step[place], self._flags[place], names[self._subtask[place]]
            yield IndexedEvent(version, self._at[place], kinds[kind], agents[member], *figures)

    def sum_costs(self, kind: Literal["agent", "subtask"], name: str, last: int) -> tuple[int, CostSum]:
        """Return the ended steps of an agent or a subtask up to a version, and their cost."""
        return (self._sums.get((kind, name)) or AttemptSums()).read(last)

    def sum_all(self, last: int) -> CostSum:
        """Return what all agents spent up to a version."""
        return sum_costs(sums.read(last)[1] for (kind, _), sums in self._sums.items() if kind == "agent")


class StateReader:
    """The states and indexes of all runs of a home, now and at past versions."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._newest: OrderedDict[TeamId, TeamState] = OrderedDict()
        self._past: OrderedDict[TeamId, list[TeamState]] = OrderedDict()
        self._indexes: OrderedDict[TeamId, RunIndex] = OrderedDict()
        self._locks: WeakValueDictionary[TeamId, asyncio.Lock] = WeakValueDictionary()

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
            keep(self._newest, run, state)

    async def _read_past(self, run: TeamId, at: int) -> TeamState:
        """Return a past state, from the nearest state before it that is in memory or in the log."""
        checkpoints = self._past.setdefault(run, [])
        near = max((state for state in checkpoints if state.version <= at), key=attrgetter("version"), default=None)
        if near is None or at - near.version > MAX_FOLD or at > self._newest[run].version:
            state = await self._runtime.state(run, at)
        else:
            state = await self._fold(run, near, at)
        kept = [known for known in checkpoints if known.version != state.version][1 - MAX_CHECKPOINTS :]
        keep(self._past, run, [*kept, state], MAX_PAST_RUNS)
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
        keep(self._indexes, run, index)
        return index

    async def index_at(self, run: TeamId, at: int | None) -> tuple[RunIndex, int]:
        """Return the index of a run and the version to show. Raise `RefusedError` for one that does not exist."""
        index = await self.index(run)
        if at is not None and not 1 <= at <= index.version:
            head = index.version
            raise make_refusal("no_such_version", translate("runs.no_such_version", team=run, head=head, at=at))
        return index, at or index.version

    async def describe(self, run: TeamId, versions: Sequence[int], language: str) -> list[EventRow]:
        """Return the events at these versions, in their order, as lines in a language."""
        if not versions:
            return []
        state = await self.read(run, versions[0] - 1) if versions[0] > 1 else EMPTY_STATE
        wanted, rows = set(versions), list[EventRow]()
        async for page in self._runtime.log.read(run, versions[0] - 1, versions[-1]):
            for stored in page:
                event = decode_event(stored)
                if stored.version in wanted:
                    row = describe_row(run, state, stored, event, language)
                    rows.append(row.model_copy(update={"data": decode_data(stored.data)}))
                state = reduce(state, event)
        return rows

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
        index, steps = await self.index(run), list[Step]()
        found = {
            row.version: index.rows_back(last=row.version, types=STEP_STARTS, agent=row.agent, step=row.step)
            for row in ends
        }
        started = {end: next((row.version for row in rows), 0) for end, rows in found.items()}
        events = await self._pick(run, [*started, *started.values()])
        queued = [event.queued for event in events.values() if isinstance(event, StepEnded)]
        events |= await self._pick(run, queued)
        for row in ends:
            end, start = events.get(row.version), events.get(started[row.version])
            begin = events.get(end.queued) if isinstance(end, StepEnded) else None
            if isinstance(end, StepEnded) and isinstance(begin, StepQueued):
                step = rebuild_step(begin, end, row.version)
                if isinstance(start, StepStarted):
                    step = evolve(step, started_at=start.at, terms=start.terms)
                steps.append(step)
        return steps

    async def _pick(self, run: TeamId, versions: Sequence[int]) -> dict[int, Event]:
        picked = await self._runtime.log.pick(run, [version for version in versions if version])
        return {stored.version: decode_event(stored) for stored in picked}


def describe_row(run: TeamId, state: TeamState, stored: StoredEvent, event: Event, language: str) -> EventRow:
    """Return the row of an event, without its data. `state` is the state before it."""
    summary, subject = describe_event(state, event, language), read_subject(stored)
    return EventRow(
        run=run,
        version=stored.version,
        at=stored.at,
        type=stored.type,
        agent=summary.who or subject.agent,
        subtask=find_subtask_name(state, event),
        step=subject.step,
        text=summary.text,
        level="bad" if subject.state == "failed" else MARK_LEVELS.get(summary.mark, "info"),
    )


def keep(cache: OrderedDict[K, T], key: K, value: T, size: int = MAX_RUNS) -> None:
    """Put a value into a cache as its newest, and drop the oldest of too many."""
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > size:
        cache.popitem(last=False)
