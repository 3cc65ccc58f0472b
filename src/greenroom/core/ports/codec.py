"""Records ↔ JSON at the border of the core: events, intents, archive rows, snapshots.

Old logs always load: fields are only added, with a default, and the default of a stored field never changes. The golden
logs in the tests enforce this.
"""

from __future__ import annotations

import hashlib
import zlib
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
from greenroom.core.base.errors import Rejection, StoreFault
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
from greenroom.core.state.agent import AgentState, Capability
from greenroom.core.state.approval import Approval, Grant
from greenroom.core.state.archive import ArchivedRecord, ArchiveEntry
from greenroom.core.state.budget import Budget
from greenroom.core.state.events import EVENT_TYPES, Event
from greenroom.core.state.knowledge import Artifact, BoardValue, Memory, Note
from greenroom.core.state.message import ConversationGroup, Message, Wait
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.team import Team
from greenroom.core.state.team_state import EMPTY_STATE, TeamState, artifact_key, value_key
from greenroom.core.state.thread import Thread
from greenroom.core.state.timer import Timer

T = TypeVar("T")

SCHEMA_VERSION: Final = 1
"""The version of the log's format. A store with a higher version is refused."""


_decoder: Final = cast("Callable[[object], Decoder[Any]]", cache(Decoder))
"""Return the cached decoder of a class. Decoders are expensive to make and cheap to use."""


def _decode(cls: type[T], data: bytes) -> T:
    """Decode a record and check every field."""
    return cast("T", _decoder(cls).decode(data))


def _describe_error(what: str, error: Exception) -> str:
    """Return where the data is wrong, then how."""
    why, _, where = str(error).partition(" - at `$")
    return f"{what}{where.rstrip('`')}: {why}"


def to_json_dict(record: object) -> dict[str, object]:
    """Convert a record to a JSON dict, without fields that have their default."""
    return cast("dict[str, object]", to_builtins(record, enc_hook=as_dict))


def find_type_error(record: object) -> str | None:
    """Return where a record violates its class's types, or None if it can be encoded and decoded."""
    try:
        _decoder(type(record)).decode(encode(record))
    except MsgspecError as error:
        return _describe_error(type(record).__name__, error)
    except (ValueError, TypeError, RecursionError) as error:
        return str(error)
    return None


def normalise_data(data: Data) -> Data:
    """Return a private copy of the data exactly as the log will return it."""
    return decode_data(encode(data))


def decode_data(encoded: bytes) -> Data:
    """Decode JSON data."""
    return _decode(dict[str, object], encoded)


def encode_event(event: Event) -> NewEvent:
    """Encode an event for the log. Decode it once to check it: creating a record does not check types."""
    cls = type(event)
    data = encode(event)
    _decoder(cls).decode(data)
    return NewEvent(event.at, cls.__name__, data)


def decode_event(stored: StoredEvent) -> Event:
    """Decode an event. Raise `StoreFault` if it is unknown or damaged."""
    cls = EVENT_TYPES.get(stored.type)
    if cls is None:
        raise StoreFault("ports.unknown_event_type", version=stored.version, type=stored.type)
    try:
        return _decode(cls, stored.data)
    except (MsgspecError, UnicodeDecodeError) as error:
        raise StoreFault("ports.event_not_readable", version=stored.version, type=stored.type, error=error) from error


ARCHIVE_TYPES: Final[dict[str, type[ArchivedRecord]]] = {
    "task": Task,
    "stage": Stage,
    "message": Message,
    "note": Note,
    "artifact": Artifact,
}


def encode_archived(row: ArchiveEntry, version: int) -> ArchiveRow:
    """Encode an archive row."""
    return ArchiveRow(row.kind, row.key, row.owner, version, encode(row.record))


def decode_archived(row: ArchiveRow) -> ArchivedRecord:
    """Decode an archived record. Raise `StoreFault` if it is damaged."""
    try:
        return _decode(ARCHIVE_TYPES[row.kind], row.data)
    except (MsgspecError, UnicodeDecodeError) as error:
        raise StoreFault("ports.archived_record_damaged", kind=row.kind, key=row.key, error=error) from error


@cache
def compute_fingerprint() -> str:
    """Return a hash of the state's source files. A snapshot made by other reducers is rebuilt, never trusted."""
    core = Path(__file__).parent.parent
    files = sorted(path for room in ("base", "state") for path in (core / room).rglob("*.py"))
    source = b"".join(path.read_bytes() for path in files)
    return hashlib.sha256(b"zlib:%d:" % SCHEMA_VERSION + source).hexdigest()[:16]


_TABLES: Final[dict[str, tuple[type[object], Callable[[Any], str]]]] = {
    "blueprints": (AgentSpec, attrgetter("name")),
    "abilities": (Capability, attrgetter("name")),
    "agents": (AgentState, attrgetter("agent_id")),
    "tasks": (Task, attrgetter("task_id")),
    "stages": (Stage, attrgetter("stage_id")),
    "threads": (Thread, attrgetter("thread_id")),
    "steps": (Step, attrgetter("step_id")),
    "waits": (Wait, attrgetter("waiting_id")),
    "mail": (Message, attrgetter("message_id")),
    "values": (BoardValue, lambda row: value_key(row.task_id, row.key)),
    "budgets": (Budget, attrgetter("budget_id")),
    "approvals": (Approval, attrgetter("approval_id")),
    "grants": (Grant, attrgetter("rule")),
    "timers": (Timer, attrgetter("timer_id")),
    "memories": (Memory, attrgetter("memory_id")),
    "artifacts": (Artifact, lambda row: artifact_key(row.task_id, row.artifact_id)),
    "releases": (Grant, attrgetter("rule")),
    "groups": (ConversationGroup, attrgetter("group_id")),
    "notes": (Note, attrgetter("note_id")),
}
"""The maps of the team state: the class of their rows, and the function that returns a row's key."""


def encode_state(state: TeamState) -> bytes:
    """Encode the whole team state, one line per table, compressed. Its size depends on open work, not on history."""
    maps = (dict(state.retired), dict(state.awaiting_budget), dict(state.letters))
    lines = [b"%d %d" % (state.version, state.at), *map(encode, (state.team, *maps))]
    tables = (encode(list(getattr(state, name).values())) for name in _TABLES)
    return zlib.compress(b"\n".join([*lines, *tables]), level=1)


def decode_state(data: bytes) -> TeamState:
    """Decode a team state. Raise `StoreFault` if it cannot be read."""
    try:
        return _decode_tables(zlib.decompress(data))
    except (MsgspecError, ValueError, zlib.error) as error:
        raise StoreFault("ports.snapshot_not_readable", error=error) from error


def _decode_tables(data: bytes) -> TeamState:
    newest, team, retired, awaiting_budget, letters, *tables = data.split(b"\n")
    version, at = newest.split()
    fields: dict[str, object] = {
        "version": int(version),
        "at": int(at),
        "team": _decode(Team, team),
        "retired": Map(_decode(dict[str, str], retired)),
        "awaiting_budget": Map(_decode(dict[str, str], awaiting_budget)),
        "letters": Map(_decode(dict[str, int], letters)),
    }
    for (name, (cls, key)), line in zip(_TABLES.items(), tables, strict=True):
        rows = cast("list[object]", _decoder(GenericAlias(list, (cls,))).decode(line))
        fields[name] = Map({key(row): _restore_unlimited(row) for row in rows})
    return evolve(EMPTY_STATE, **fields)


def _restore_unlimited(row: object) -> object:
    """Reuse the `UNLIMITED` object for a budget without limits, also after a restart."""
    if isinstance(row, Budget) and row.limits == UNLIMITED:
        return evolve(row, limits=UNLIMITED)
    return row


def encode_intent(intent: Intent) -> bytes:
    """Encode an intent for the inbox."""
    return b'{"intent":"%s","data":%s}' % (type(intent).__name__.encode(), encode(intent))


def decode_intent(data: bytes) -> Intent | Rejection:
    """Decode an intent from the inbox, or return why it is rejected. The inbox is untrusted."""
    try:
        envelope = _decode(_Envelope, data)
        cls = INTENT_TYPES.get(envelope.intent)
        if cls is None or cls in _OWNERS_ONLY:
            return Rejection(code="unknown_intent", why=f"There is no intent {envelope.intent!r} for an inbox.")
        return _decode(cls, bytes(envelope.data))
    except (MsgspecError, UnicodeDecodeError) as error:
        return Rejection(code="bad_intent", why=f"{_describe_error('the intent', error)}.")


def validate_intent(intent: Intent, rewrite: Callable[[bytes], bytes] = bytes) -> Intent | Rejection:
    """Return the intent as the log would hold it, or why it is rejected. Creating a record does not check types.
    `rewrite` changes its JSON."""
    name = type(intent).__name__
    if type(intent) not in INTENT_TYPES.values():
        return Rejection(code="unknown_intent", why=f"{name} is unknown.", hint=f"Known: {', '.join(INTENT_TYPES)}.")
    if type(intent) in _ACTORS_ONLY:
        why = f"{name} is reserved for Greenroom's own actors."
        return Rejection(code="owners_only", why=why, hint="Submit an intent for the result that you want.")
    try:
        return _decode(type(intent), rewrite(encode(intent)))
    except MsgspecError as error:
        return Rejection(code="bad_intent", why=f"{_describe_error(name, error)}.")
    except (ValueError, TypeError, RecursionError) as error:
        why = str(error).replace("\n", " ")[:300]
        return Rejection(code="bad_intent", why=f"{name} cannot be encoded: {why}.")


@record
class _Envelope:
    intent: str
    data: Raw


_ACTORS_ONLY: Final = frozenset({Recover, Declare, StartStep, PrepareEffect, FinishStep, ReleaseStep, FireTimer})
_OWNERS_ONLY: Final = _ACTORS_ONLY | {CreateTeam, ForkTeam}
"""Intents that only the owner may submit: another process may not put them into the inbox."""


def encode_outcome(refused: Rejection | None) -> bytes:
    """Encode the answer to an inbox intent: accepted, or the rejection."""
    return b"null" if refused is None else encode(refused)


def decode_outcome(data: bytes) -> Rejection | None:
    """Decode the owner's answer to an inbox intent."""
    return None if data == b"null" else _decode(Rejection, data)
