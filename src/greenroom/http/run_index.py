"""An index of a run's events: when each happened, of which type and agent it is, and what it cost.

It has 16 bytes per event and 28 per attempt, so that a page of a long run is found without reading those before it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.json import Decoder

from greenroom.core.base.ids import StepId, WaitingId, agent_of, waiter_of
from greenroom.core.ports.log import StoredEvent

FAILED: Final = 1
WITH_MODEL: Final = 2
JUDGED: Final = 4
WAITING: Final = 8
"""Flags of an event: a step or subtask failed; an attempt calls a model; a step's result has a verdict or a tree of
files; a sender waits for a reply."""


JUDGED_KEYS: Final = (b'"tree":', b'"verdict":')


class _Spent(Struct):
    money: int = 0
    tokens: int = 0


class _Sent(Struct):
    sender_id: str = ""
    waiting: tuple[str, ...] | None = None


class _Terms(Struct):
    effect: str = ""


class EventSubject(Struct):
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
    terms: _Terms | None = None
    spent: _Spent | None = None

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
    """What the index knows about an event. `step` is the number of its agent's step, 0 if it is about none."""

    version: int
    at: int
    type: str
    agent: str
    step: int
    flags: int


class AgentSums:
    """What an agent has done and spent by each of its attempts."""

    def __init__(self) -> None:
        self._versions = array("I")
        self._sums = (array("q"), array("q"), array("q"))

    def add(self, version: int, type_: str, spent: _Spent) -> None:
        """Add an attempt that ended at this version."""
        self._versions.append(version)
        for column, value in zip(self._sums, (type_ == "StepEnded", spent.money, spent.tokens), strict=True):
            column.append((column[-1] if column else 0) + max(value, 0))

    def read(self, last: int) -> tuple[int, int, int]:
        """Return the ended steps, millionths of a dollar and tokens up to a version."""
        place = bisect_right(self._versions, last) - 1
        steps, money, tokens = self._sums
        return (steps[place], money[place], tokens[place]) if place >= 0 else (0, 0, 0)


class RunIndex:
    """The index of one run, up to its version. Rows are added in their order."""

    def __init__(self) -> None:
        self._at = array("q")
        self._kind = array("B")
        self._agent = array("H")
        self._step = array("I")
        self._flags = array("B")
        self._kinds: list[str] = []
        self._agents: list[str] = []
        self._codes: dict[tuple[str, str], int] = {}
        self._spent: dict[str, AgentSums] = {}
        self.released: dict[str, int] = {}

    @property
    def version(self) -> int:
        """The version of the last event."""
        return len(self._at)

    def add(self, stored: StoredEvent) -> None:
        """Add the next event."""
        fields = read_subject(stored)
        flags = FAILED if fields.state == "failed" else 0
        flags |= WITH_MODEL if fields.terms is not None and fields.terms.effect == "model" else 0
        flags |= JUDGED if stored.type == "StepEnded" and any(key in stored.data for key in JUDGED_KEYS) else 0
        flags |= WAITING if fields.message is not None and fields.message.waiting else 0
        self._at.append(stored.at)
        self._kind.append(self._code("kind", stored.type, self._kinds))
        self._agent.append(self._code("agent", fields.agent, self._agents))
        ordinal = fields.step.rpartition("#")[2]
        self._step.append(int(ordinal) if ordinal.isdigit() else 0)
        self._flags.append(flags)
        if fields.spent is not None and stored.type in ("StepEnded", "StepInterrupted"):
            self._spent.setdefault(fields.agent, AgentSums()).add(stored.version, stored.type, fields.spent)
        if stored.type == "WaitReleased":
            self.released[fields.waiting_id] = stored.at

    def _code(self, table: str, name: str, names: list[str]) -> int:
        code = self._codes.setdefault((table, name), len(names))
        if code == len(names):
            names.append(name)
        return code

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
        yield from map(self._row, self._find(range(first, min(last or self.version, self.version) + 1), types, agent))

    def rows_back(
        self, *, last: int, types: frozenset[str] = frozenset(), agent: str = "", step: int = 0
    ) -> Iterator[IndexedEvent]:
        """Yield the events up to `last`, newest first, of these types, this agent and its step."""
        for version in self._find(range(min(last, self.version), 0, -1), types, agent):
            if not step or self._step[version - 1] == step:
                yield self._row(version)

    def _find(self, versions: range, types: frozenset[str], agent: str) -> Iterator[int]:
        kinds = {self._codes[("kind", name)] for name in types if ("kind", name) in self._codes}
        if (types and not kinds) or (agent and ("agent", agent) not in self._codes):
            return
        code = self._codes[("agent", agent)] if agent else -1
        for version in versions:
            if (not kinds or self._kind[version - 1] in kinds) and code in (-1, self._agent[version - 1]):
                yield version

    def _row(self, version: int) -> IndexedEvent:
        place = version - 1
        kind, agent = self._kinds[self._kind[place]], self._agents[self._agent[place]]
        return IndexedEvent(version, self._at[place], kind, agent, self._step[place], self._flags[place])

    def sum_costs(self, agent: str, last: int) -> tuple[int, int, int]:
        """Return the ended steps, millionths of a dollar and tokens of an agent up to a version."""
        return self._spent[agent].read(last) if agent in self._spent else (0, 0, 0)
