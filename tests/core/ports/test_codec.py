"""Records and their JSON: what goes into the log comes out of it again, and what cannot be read says so."""

import json
from collections.abc import Callable
from types import MappingProxyType
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import ValidationError

from greenroom.core.base.amounts import UNLIMITED, Amounts, Limits
from greenroom.core.base.errors import Rejection, StoreFault
from greenroom.core.base.ids import TEAM_BUDGET, ThreadId, step_id, task_budget
from greenroom.core.ports.codec import (
    ARCHIVE_TYPES,
    compute_fingerprint,
    decode_archived,
    decode_event,
    decode_intent,
    decode_outcome,
    decode_state,
    encode_archived,
    encode_event,
    encode_intent,
    encode_outcome,
    encode_state,
    find_type_error,
    validate_intent,
)
from greenroom.core.ports.log import ArchiveRow, StoredEvent
from greenroom.core.rules import intents as i
from greenroom.core.state.archive import ArchivedRecord, ArchiveEntry, ArchiveKind
from greenroom.core.state.events import EVENT_TYPES, Event
from greenroom.core.state.team import TeamPaused
from greenroom.core.state.thread import WorkspaceSet
from tests.core.house import ANN, BOB, T1, House, question
from tests.core.invariants import through_the_log
from tests.core.ports.shapes import made

OWNERS = {
    "CreateTeam",
    "ForkTeam",
    "Recover",
    "Declare",
    "StartStep",
    "PrepareEffect",
    "FinishStep",
    "ReleaseStep",
    "FireTimer",
}
FEW = settings(max_examples=15, deadline=None)


@pytest.mark.parametrize("name", sorted(EVENT_TYPES))
@given(data=st.data())
@FEW
def test_every_event_comes_back_from_the_log_as_it_was(name: str, data: st.DataObject) -> None:
    event: Event = data.draw(made(EVENT_TYPES[name]))
    assert through_the_log(event) == event
    assert "\n" not in encode_event(event).data.decode()


@pytest.mark.parametrize("name", sorted(set(i.INTENT_TYPES) - OWNERS))
@given(data=st.data())
@FEW
def test_every_intent_of_a_door_comes_back_from_the_inbox_as_it_was(name: str, data: st.DataObject) -> None:
    intent: i.Intent = data.draw(made(i.INTENT_TYPES[name]))
    assert decode_intent(encode_intent(intent)) == intent


@pytest.mark.parametrize("kind", sorted(ARCHIVE_TYPES))
@given(data=st.data())
@FEW
def test_every_row_comes_back_from_the_archive_as_it_was(kind: ArchiveKind, data: st.DataObject) -> None:
    record: ArchivedRecord = data.draw(made(ARCHIVE_TYPES[kind]))
    row = ArchiveEntry(kind, "k", "o", lambda one: one, (record,))
    encoded = encode_archived(row, 7)
    assert (encoded.kind, encoded.key, encoded.owner, encoded.version) == (kind, "k", "o", 7)
    assert decode_archived(encoded) == record


def test_what_has_its_default_takes_no_room_in_the_log() -> None:
    house = House.furnished().queue(ANN)
    stored = json.loads(encode_event(house.log[-1]).data)
    assert not {"answers", "after", "jumped", "retry", "cause", "pending"} & set(stored)


def test_an_event_of_a_newer_greenroom_is_refused_with_its_name() -> None:
    with pytest.raises(StoreFault, match="unknown type 'CoffeeBrewed'"):
        decode_event(StoredEvent(version=3, at=1, type="CoffeeBrewed", data=b"{}"))


@pytest.mark.parametrize("data", [b"{}", b"not json", b'{"at": "noon"}'])
def test_a_damaged_event_is_refused_with_its_number(data: bytes) -> None:
    with pytest.raises(StoreFault, match=r"Event 3 \(TeamPaused\) cannot be read"):
        decode_event(StoredEvent(version=3, at=1, type="TeamPaused", data=data))


def test_a_world_comes_back_from_its_snapshot_with_all_its_tables() -> None:
    house = House.furnished(limits=Limits(money=5)).queue(ANN).run(ANN, question(BOB))
    house.do(i.SetValue(task_id=T1, key="a/b", content="x\ny"), i.PostNote(task_id=T1, content="n"))
    state = decode_state(encode_state(house.state))
    assert state == house.state
    assert list(state.values) == ["t1/a/b"]
    assert state.budgets[TEAM_BUDGET].limits is UNLIMITED


def test_a_budget_whose_limits_were_lifted_is_unlimited_after_a_restart_too() -> None:
    house = House.furnished(limits=Limits(money=5)).do(i.SetLimits(budget_id=task_budget(T1), limits=Limits()))
    state = decode_state(encode_state(house.state))
    assert state.budgets[task_budget(T1)].limits is UNLIMITED


def test_the_fingerprint_names_the_reducers() -> None:
    assert len(compute_fingerprint()) == 16
    assert int(compute_fingerprint(), 16) >= 0


# ---------------------------------------------------------------------------------------------- the inbox


@pytest.mark.parametrize("name", sorted(OWNERS))
def test_what_only_the_owner_asks_for_is_not_taken_from_the_inbox(name: str) -> None:
    found = decode_intent(json.dumps({"intent": name, "data": {}}).encode())
    assert isinstance(found, Rejection)
    assert found.code == "unknown_intent"


@pytest.mark.parametrize(
    ("data", "code", "why"),
    [
        (b"", "bad_intent", "the intent"),
        (b"[]", "bad_intent", "the intent"),
        (b'{"intent": "CancelTask"}', "bad_intent", "data"),
        (b'{"intent": "CancelTask", "data": {}}', "bad_intent", "task_id"),
        (b'{"intent": "CancelTask", "data": {"task_id": 7}}', "bad_intent", "task_id"),
        (b'{"intent": "DropTheHouse", "data": {}}', "unknown_intent", "DropTheHouse"),
        (b'{"intent": "AskInfo", "data": {"query": "weather", "task_id": "t1"}}', "bad_intent", "query"),
    ],
)
def test_what_cannot_be_read_is_refused_and_says_where(data: bytes, code: str, why: str) -> None:
    found = decode_intent(data)
    assert isinstance(found, Rejection)
    assert found.code == code
    assert why in found.why


def test_a_list_from_json_becomes_what_the_rules_expect() -> None:
    data = b'{"intent": "SendMessage", "data": {"task_id": "t1", "receiver": ["ann"], "message": "x"}}'
    assert decode_intent(data) == i.SendMessage(task_id=T1, receiver=(ANN,), message="x")
    assert decode_intent(encode_intent(i.CancelTask(task_id=T1))) == i.CancelTask(task_id=T1)


@pytest.mark.parametrize("outcome", [None, Rejection(code="no", why="No.", hint="Yes.")])
def test_the_owners_answer_comes_back_as_it_was(outcome: Rejection | None) -> None:
    assert decode_outcome(encode_outcome(outcome)) == outcome


# ---------------------------------------------------------------------------------------------- what cannot be written


@pytest.mark.parametrize("content", ["a\ud800b", 7, None], ids=["half a character", "a number", "nothing"])
def test_an_intent_that_could_not_be_read_back_is_refused(content: object) -> None:
    make: Callable[..., i.PostNote] = i.PostNote
    found = validate_intent(make(task_id=T1, content=content))
    assert isinstance(found, Rejection)
    assert found.code == "bad_intent"
    assert found.why.startswith("PostNote")


def test_what_actors_ask_for_is_for_actors_only() -> None:
    found = validate_intent(i.ReleaseStep(step_id=step_id(ANN, 1), attempt=1, why="I say so"))
    assert isinstance(found, Rejection)
    assert found.code == "owners_only"


def test_data_of_a_stranger_is_written_as_json_has_it_or_not_at_all() -> None:
    where = ThreadId("ann@t1")
    odd = WorkspaceSet(at=1, thread_id=where, workspace=MappingProxyType({"a": (1, 2)}))
    assert json.loads(encode_event(odd).data)["workspace"] == {"a": [1, 2]}
    with pytest.raises(TypeError, match="object cannot be encoded as JSON"):
        encode_event(WorkspaceSet(at=1, thread_id=where, workspace={"a": object()}))


def test_an_event_that_could_not_be_read_back_is_not_written() -> None:
    make: Callable[..., TeamPaused] = TeamPaused
    with pytest.raises(ValidationError, match="why"):
        encode_event(make(at=1, why=7))


def test_an_intent_is_what_the_log_would_have() -> None:
    message = i.SendMessage(task_id=T1, receiver=(ANN,), message="x", data={"a": (1, 2)})
    found = validate_intent(message)
    assert isinstance(found, i.SendMessage)
    assert found.data == {"a": [1, 2]}
    assert validate_intent(i.CancelTask(task_id=T1)) == i.CancelTask(task_id=T1)


@pytest.mark.parametrize("data", [b"", b"not json", b'{"name": 5}'])
def test_a_damaged_row_of_the_archive_is_refused_with_its_key(data: bytes) -> None:
    with pytest.raises(StoreFault, match=r"The task 't1' in the archive cannot be read"):
        decode_archived(ArchiveRow("task", "t1", "", 3, data))


@pytest.mark.parametrize("cut", [0, 1, 30, -5])
def test_a_damaged_snapshot_is_refused(cut: int) -> None:
    with pytest.raises(StoreFault, match="snapshot cannot be read"):
        decode_state(encode_state(House.furnished().state)[:cut])


def test_what_is_odd_about_a_record_is_said_with_its_place() -> None:
    make: Callable[..., Amounts] = Amounts
    assert find_type_error(Amounts(tokens=1)) is None
    assert find_type_error(make(tokens=1.5)) == "Amounts.tokens: Expected `int`, got `float`"
    assert find_type_error(make(tokens=object())) == "object cannot be encoded as JSON"


def test_what_is_no_intent_is_refused() -> None:
    found = validate_intent(cast("i.Intent", "junk"))
    assert isinstance(found, Rejection)
    assert found.code == "unknown_intent"
