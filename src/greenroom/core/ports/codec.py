"""Records ↔ JSON at the rim: events, intents, archive rows, snapshots. What is written here can be read back here.

Old logs always load: fields are only added, with a default, and a default of a stored record never changes. The golden
logs in the tests hold us to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import GenericAlias
from typing import Any, Final, TypeVar, cast

from immutables import Map
from msgspec import MsgspecError, Raw, to_builtins
from msgspec.json import Decoder

from greenroom.core.base.amounts import UNLIMITED
from greenroom.core.base.errors import Rejected, StoreFault
from greenroom.core.base.records import Data, as_dict, encode, evolve, record
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
from greenroom.core.state.agent import Ability, Agent
from greenroom.core.state.approval import Approval, Grant
from greenroom.core.state.archive import Archived, ArchivedRecord
from greenroom.core.state.budget import Budget
from greenroom.core.state.events import EVENT_TYPES, Event
from greenroom.core.state.knowledge import Artifact, Memory, Note, Value
from greenroom.core.state.message import Group, Message, Wait
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.team import Team
from greenroom.core.state.thread import Thread
from greenroom.core.state.timer import Timer
from greenroom.core.state.world import NOWHERE, World, artifact_key, value_key

T = TypeVar("T")

SCHEMA: Final = 1
"""The version of everything that lies in a log. A store with a higher one is refused."""


_decoder: Final = cast("Callable[[object], Decoder[Any]]", cache(Decoder))
"""By class: expensive to make, cheap to use."""


def _decode(cls: type[T], data: bytes) -> T:
    """A record of this class, every field of it checked."""
    return cast("T", _decoder(cls).decode(data))


def _place(what: str, error: Exception) -> str:
    """Where it is wrong and how, in the order in which a person reads."""
    why, _, where = str(error).partition(" - at `$")
    return f"{what}{where.rstrip('`')}: {why}"


def plain(record: object) -> dict[str, object]:
    """A record as JSON shows it: what has its default is left out."""
    return cast("dict[str, object]", to_builtins(record, enc_hook=as_dict))


def odd(record: object) -> str | None:
    """Where a record does not hold what its class says; None when all of it could be written and read back."""
    try:
        _decoder(type(record)).decode(encode(record))
    except MsgspecError as error:
        return _place(type(record).__name__, error)
    except (ValueError, TypeError, RecursionError) as error:
        return str(error)
    return None


def normal(data: Data) -> Data:
    """The data as the log will have it, and nobody else's: what is read back later is what was there at once."""
    return read_back(encode(data))


def read_back(written: bytes) -> Data:
    """Data that was written down."""
    return _decode(dict[str, object], written)


def encode_event(event: Event) -> NewEvent:
    """The event as it goes into the log. It is read back at once: types are not enforced when a record is made."""
    cls = type(event)
    data = encode(event)
    _decoder(cls).decode(data)
    return NewEvent(event.at, cls.__name__, data)


def decode_event(stored: StoredEvent) -> Event:
    """The event as it was."""
    cls = EVENT_TYPES.get(stored.type)
    if cls is None:
        raise StoreFault(
            f"Event {stored.version} is of the unknown type {stored.type!r}. "
            "The log was written by a newer Greenroom: use that version to read it."
        )
    try:
        return _decode(cls, stored.data)
    except (MsgspecError, UnicodeDecodeError) as error:
        raise StoreFault(
            f"Event {stored.version} ({stored.type}) cannot be read: {error}. "
            "The log is damaged; `greenroom doctor` checks it."
        ) from error


ARCHIVE_TYPES: Final[dict[str, type[ArchivedRecord]]] = {
    "task": Task,
    "stage": Stage,
    "message": Message,
    "note": Note,
    "artifact": Artifact,
}


def encode_archived(row: Archived, version: int) -> ArchiveRow:
    """The archive row as it goes beside the log."""
    return ArchiveRow(row.kind, row.key, row.owner, version, encode(row.record))


def decode_archived(row: ArchiveRow) -> ArchivedRecord:
    """The record as it left the world."""
    try:
        return _decode(ARCHIVE_TYPES[row.kind], row.data)
    except (MsgspecError, UnicodeDecodeError) as error:
        raise StoreFault(
            f"The {row.kind} {row.key!r} in the archive cannot be read: {error}. "
            "The store is damaged; `greenroom doctor` checks it."
        ) from error


@cache
def fingerprint() -> str:
    """A hash of the state's source files: a snapshot made by other reducers is rebuilt, never trusted."""
    core = Path(__file__).parent.parent
    files = sorted(path for room in ("base", "state") for path in (core / room).rglob("*.py"))
    source = b"".join(path.read_bytes() for path in files)
    return hashlib.sha256(b"%d:" % SCHEMA + source).hexdigest()[:16]


_TABLES: Final[dict[str, tuple[type[object], Callable[[Any], str]]]] = {
    "blueprints": (AgentSpec, attrgetter("name")),
    "abilities": (Ability, attrgetter("name")),
    "agents": (Agent, attrgetter("agent_id")),
    "tasks": (Task, attrgetter("task_id")),
    "stages": (Stage, attrgetter("stage_id")),
    "threads": (Thread, attrgetter("thread_id")),
    "steps": (Step, attrgetter("step_id")),
    "waits": (Wait, attrgetter("waiting_id")),
    "mail": (Message, attrgetter("message_id")),
    "values": (Value, lambda row: value_key(row.task_id, row.key)),
    "budgets": (Budget, attrgetter("budget_id")),
    "approvals": (Approval, attrgetter("approval_id")),
    "grants": (Grant, attrgetter("rule")),
    "timers": (Timer, attrgetter("timer_id")),
    "memories": (Memory, attrgetter("memory_id")),
    "artifacts": (Artifact, lambda row: artifact_key(row.task_id, row.artifact_id)),
    "releases": (Grant, attrgetter("rule")),
    "groups": (Group, attrgetter("group_id")),
    "notes": (Note, attrgetter("note_id")),
}
"""The maps of the world: of what each is made, and by what its rows are found."""


def encode_world(world: World) -> bytes:
    """The whole world: one line per table. Grows with open work, never with history."""
    maps = (dict(world.retired), dict(world.hungry), dict(world.letters))
    lines = [b"%d %d" % (world.version, world.at), *map(encode, (world.team, *maps))]
    return b"\n".join([*lines, *(encode(list(getattr(world, name).values())) for name in _TABLES)])


def decode_world(data: bytes) -> World:
    """The world as it was; `StoreFault` when that cannot be read."""
    try:
        return _world(data)
    except (MsgspecError, ValueError) as error:
        raise StoreFault(f"The snapshot cannot be read: {error}.") from error


def _world(data: bytes) -> World:
    newest, team, retired, hungry, letters, *tables = data.split(b"\n")
    version, at = newest.split()
    fields: dict[str, object] = {
        "version": int(version),
        "at": int(at),
        "team": _decode(Team, team),
        "retired": Map(_decode(dict[str, str], retired)),
        "hungry": Map(_decode(dict[str, str], hungry)),
        "letters": Map(_decode(dict[str, int], letters)),
    }
    for (name, (cls, key)), line in zip(_TABLES.items(), tables, strict=True):
        rows = cast("list[object]", _decoder(GenericAlias(list, (cls,))).decode(line))
        fields[name] = Map({key(row): _kept(row) for row in rows})
    return evolve(NOWHERE, **fields)


def _kept(row: object) -> object:
    """A budget without limits has the one UNLIMITED, also after a restart."""
    if isinstance(row, Budget) and row.limits == UNLIMITED:
        return evolve(row, limits=UNLIMITED)
    return row


def encode_intent(intent: Intent) -> bytes:
    """An intent as it lies in the inbox."""
    return b'{"intent":"%s","data":%s}' % (type(intent).__name__.encode(), encode(intent))


def decode_intent(data: bytes) -> Intent | Rejected:
    """The intent that somebody asked for, or why it cannot be read. The inbox is untrusted."""
    try:
        envelope = _decode(_Envelope, data)
        cls = INTENT_TYPES.get(envelope.intent)
        if cls is None or cls in _OWNERS_ONLY:
            return Rejected(code="unknown_intent", why=f"There is no intent {envelope.intent!r} for an inbox.")
        return _decode(cls, bytes(envelope.data))
    except (MsgspecError, UnicodeDecodeError) as error:
        return Rejected(code="bad_intent", why=f"{_place('the intent', error)}.")


def checked_intent(intent: Intent) -> Intent | Rejected:
    """The intent as the log would have it, or why it cannot be one: types are not enforced when a record is made."""
    name = type(intent).__name__
    if type(intent) not in INTENT_TYPES.values():
        return Rejected(code="unknown_intent", why=f"{name} is no intent.", hint=f"Known: {', '.join(INTENT_TYPES)}.")
    if type(intent) in _ACTORS_ONLY:
        why = f"{name} is for the house's own actors."
        return Rejected(code="owners_only", why=why, hint="Ask for what it is to do.")
    try:
        return _decode(type(intent), encode(intent))
    except MsgspecError as error:
        return Rejected(code="bad_intent", why=f"{_place(name, error)}.")
    except (ValueError, TypeError, RecursionError) as error:
        why = str(error).replace("\n", " ")[:300]
        return Rejected(code="bad_intent", why=f"{name} cannot be written down: {why}.")


@record
class _Envelope:
    intent: str
    data: Raw


_ACTORS_ONLY: Final = frozenset({Recover, Declare, StartStep, PrepareEffect, FinishStep, ReleaseStep, FireTimer})
_OWNERS_ONLY: Final = _ACTORS_ONLY | {CreateTeam, ForkTeam}
"""What only the owner asks for: no other process may put it into the inbox."""


def encode_outcome(refused: Rejected | None) -> bytes:
    """What the sender of an inbox intent reads: accepted, or why not."""
    return b"null" if refused is None else encode(refused)


def decode_outcome(data: bytes) -> Rejected | None:
    """The owner's answer to an inbox intent."""
    return None if data == b"null" else _decode(Rejected, data)
