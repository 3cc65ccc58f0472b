"""Records ↔ JSON at the rim: events, intents, archive rows, snapshots. The only place in the core that knows pydantic.

Old logs always load: fields are only added, with a default, and a default of a stored record never changes. The golden
logs in the tests hold us to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from functools import cache, partial
from pathlib import Path
from types import GenericAlias
from typing import Final, TypeVar, cast

from immutables import Map
from pydantic import TypeAdapter, ValidationError

from greenroom.core.base.amounts import UNLIMITED
from greenroom.core.base.errors import Rejected, StoreFault
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.log import ArchiveRow, NewEvent, StoredEvent
from greenroom.core.rules.intents import (
    INTENT_TYPES,
    CreateTeam,
    Declare,
    FinishStep,
    FireTimer,
    ForkTeam,
    Intent,
    PrepareEffect,
    Recover,
    ReleaseStep,
    StartStep,
)
from greenroom.core.state.agent import Ability, Agent, AgentSpec
from greenroom.core.state.approval import Approval
from greenroom.core.state.archive import Archived, ArchivedRecord
from greenroom.core.state.budget import Budget
from greenroom.core.state.events import EVENT_TYPES, Event
from greenroom.core.state.message import Message, Wait
from greenroom.core.state.note import Note, Value
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.team import Team
from greenroom.core.state.thread import Thread
from greenroom.core.state.timer import Timer
from greenroom.core.state.world import NOWHERE, World, value_key

T = TypeVar("T")
K = TypeVar("K", bound=str)
V = TypeVar("V", bound=str)

SCHEMA: Final = 1
"""The version of everything that lies in a log. A store with a higher one is refused."""


@cache
def _adapter(cls: Hashable) -> TypeAdapter[object]:
    return TypeAdapter(cast("type[object]", cls))


def adapter(cls: type[T]) -> TypeAdapter[T]:
    """The (expensive to make, cheap to use) adapter of a record class."""
    return cast("TypeAdapter[T]", _adapter(cast("Hashable", cls)))


@cache
def _dump(cls: Hashable) -> Callable[[object], bytes]:
    """How records of this class are written. Defaults are left out; what could not be read back is not written."""
    return partial(_adapter(cls).serializer.to_json, exclude_defaults=True, warnings="error")


def encode_event(event: Event) -> NewEvent:
    """The event as it goes into the log."""
    cls = type(event)
    return NewEvent(at=event.at, type=cls.__name__, data=_dump(cast("Hashable", cls))(event))


def decode_event(stored: StoredEvent) -> Event:
    """The event as it was."""
    cls = EVENT_TYPES.get(stored.type)
    if cls is None:
        raise StoreFault(
            f"Event {stored.version} is of the unknown type {stored.type!r}. "
            "The log was written by a newer Greenroom: use that version to read it."
        )
    try:
        return adapter(cls).validate_json(stored.data)
    except ValidationError as error:
        raise StoreFault(
            f"Event {stored.version} ({stored.type}) cannot be read: {error.errors()[0]['msg']}. "
            "The log is damaged; `greenroom doctor` checks it."
        ) from error


ARCHIVE_TYPES: Final[dict[str, type[ArchivedRecord]]] = {
    "task": Task,
    "stage": Stage,
    "message": Message,
    "note": Note,
}


def encode_archived(row: Archived, version: int) -> ArchiveRow:
    """The archive row as it goes beside the log."""
    data = _dump(cast("Hashable", type(row.record)))(row.record)
    return ArchiveRow(row.kind, row.key, row.owner, version, data)


def decode_archived(row: ArchiveRow) -> ArchivedRecord:
    """The record as it left the world."""
    return adapter(ARCHIVE_TYPES[row.kind]).validate_json(row.data)


@cache
def fingerprint() -> str:
    """A hash of the state's source files: a snapshot made by other reducers is rebuilt, never trusted."""
    core = Path(__file__).parent.parent
    files = sorted(path for room in ("base", "state") for path in (core / room).rglob("*.py"))
    source = b"".join(path.read_bytes() for path in files)
    return hashlib.sha256(b"%d:" % SCHEMA + source).hexdigest()[:16]


_TABLES: Final[dict[str, type[object]]] = {
    "blueprints": AgentSpec,
    "abilities": Ability,
    "agents": Agent,
    "tasks": Task,
    "stages": Stage,
    "threads": Thread,
    "steps": Step,
    "waits": Wait,
    "mail": Message,
    "values": Value,
    "budgets": Budget,
    "approvals": Approval,
    "timers": Timer,
}

_KEYS: Final[dict[str, str]] = {
    "blueprints": "name",
    "abilities": "name",
    "agents": "agent_id",
    "tasks": "task_id",
    "stages": "stage_id",
    "threads": "thread_id",
    "steps": "step_id",
    "waits": "waiting_id",
    "mail": "message_id",
    "budgets": "budget_id",
    "approvals": "approval_id",
    "timers": "timer_id",
}


def encode_world(world: World) -> bytes:
    """The whole world: one line per table. Grows with open work, never with history."""
    lines = [b"%d" % world.version, adapter(Team).dump_json(world.team), _pairs(world.retired), _pairs(world.hungry)]
    for name, cls in _TABLES.items():
        rows = map(_dump(cast("Hashable", cls)), getattr(world, name).values())
        lines.append(b"[" + b",".join(rows) + b"]")
    return b"\n".join(lines)


def _pairs(table: Mapping[K, V]) -> bytes:
    return adapter(dict[str, str]).dump_json({str(key): str(value) for key, value in table.items()})


def decode_world(data: bytes) -> World:
    """The world as it was."""
    version, team, retired, hungry, *tables = data.split(b"\n")
    fields: dict[str, object] = {
        "version": int(version),
        "team": adapter(Team).validate_json(team),
        "retired": Map(adapter(dict[str, str]).validate_json(retired)),
        "hungry": Map(adapter(dict[str, str]).validate_json(hungry)),
    }
    for (name, cls), line in zip(_TABLES.items(), tables, strict=True):
        fields[name] = Map({_key(name, row): _kept(row) for row in _rows(cast("Hashable", cls)).validate_json(line)})
    return evolve(NOWHERE, **fields)


@cache
def _rows(cls: Hashable) -> TypeAdapter[list[object]]:
    return TypeAdapter(cast("type[list[object]]", GenericAlias(list, cls)))


def _kept(row: object) -> object:
    """A budget without limits has the one UNLIMITED, also after a restart."""
    if isinstance(row, Budget) and row.limits == UNLIMITED:
        return evolve(row, limits=UNLIMITED)
    return row


def _key(table: str, row: object) -> str:
    if isinstance(row, Value):
        return value_key(row.task_id, row.key)
    return cast("str", getattr(row, _KEYS[table]))


def encode_intent(intent: Intent) -> bytes:
    """An intent as it lies in the inbox."""
    body = _dump(cast("Hashable", type(intent)))(intent)
    return b'{"intent":"%s","data":%s}' % (type(intent).__name__.encode(), body)


def decode_intent(data: bytes) -> Intent | Rejected:
    """The intent that somebody asked for, or why it cannot be read. The inbox is untrusted."""
    try:
        envelope = adapter(_Envelope).validate_json(data)
        cls = INTENT_TYPES.get(envelope.intent)
        if cls is None or cls in _OWNERS_ONLY:
            return Rejected(code="unknown_intent", why=f"There is no intent {envelope.intent!r} for an inbox.")
        return adapter(cls).validate_python(envelope.data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the intent"
        return Rejected(code="bad_intent", why=f"{where}: {first['msg']}.")


def checked_intent(intent: Intent) -> Intent | Rejected:
    """The intent as the log would have it, or why it cannot be one: types are not enforced when a record is made."""
    try:
        return adapter(type(intent)).validate_json(_dump(cast("Hashable", type(intent)))(intent))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return Rejected(code="bad_intent", why=f"{type(intent).__name__}.{where}: {first['msg']}.")
    except (ValueError, TypeError, RecursionError) as error:
        why = str(error).replace("\n", " ")[:300]
        return Rejected(code="bad_intent", why=f"{type(intent).__name__} cannot be written down: {why}.")


@record
class _Envelope:
    intent: str
    data: Mapping[str, object]


_OWNERS_ONLY: Final = frozenset(
    {CreateTeam, ForkTeam, Recover, Declare, StartStep, PrepareEffect, FinishStep, ReleaseStep, FireTimer}
)
"""What only the owner's own actors ask for: no other process may put it into the inbox."""


def encode_outcome(refused: Rejected | None) -> bytes:
    """What the sender of an inbox intent reads: accepted, or why not."""
    return b"null" if refused is None else adapter(Rejected).dump_json(refused)


def decode_outcome(data: bytes) -> Rejected | None:
    """The owner's answer to an inbox intent."""
    return None if data == b"null" else adapter(Rejected).validate_json(data)
