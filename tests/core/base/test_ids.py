"""Ids tell whose they are."""

import pytest

from greenroom.core.base import ids
from greenroom.core.base.ids import AgentId, has_mixed_scripts, is_lookalike

ANN, BOB = AgentId("ann"), AgentId("bob")


def test_an_id_is_made_from_its_owner_and_an_ordinal() -> None:
    task = ids.task_id(3)
    stage = ids.stage_id(task, 2)
    assert (task, stage, ids.subtask_id(stage, 1)) == ("t3", "t3.s2", "t3.s2.1")
    assert ids.note_id(task, 4) == "t3/n4"
    assert ids.step_id(ANN, 7) == "ann#7"
    assert ids.thread_id(ANN, task) == "ann@t3"
    assert ids.approval_id(ids.step_id(ANN, 7), 2) == "ann#7?2"
    assert ids.timer_id("ann", "tea") == "ann!tea"
    assert (ids.task_budget(task), ids.agent_budget(ANN)) == ("task:t3", "agent:ann")


def test_an_owner_is_read_back_from_an_id() -> None:
    waiting = ids.waiting_id(ids.message_id(ANN, 5), BOB)
    assert waiting == "ann>5:bob"
    assert (ids.waiter_of(waiting), ids.awaited_of(waiting)) == (ANN, BOB)
    assert ids.sender_of(ids.message_id(ANN, 5)) == ANN
    assert ids.agent_of(ids.step_id(BOB, 1)) == BOB
    assert ids.task_of(ids.stage_id(ids.task_id(3), 2)) == "t3"


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("ann", "ann", True),
        ("ann", "ANN", True),
        ("ann", "ａｎｎ", True),
        ("ann", "a\ufe0fnn", True),
        ("straße", "STRASSE", True),
        ("José", "Jose\u0301", True),
        ("小明", "小明", True),
        ("ann", "anna", False),
        ("小明", "小红", False),
        ("анна", "ann", False),
    ],
)
def test_names_can_be_taken_for_each_other_whatever_their_letters_case_and_form(
    one: str, other: str, alike: bool
) -> None:
    assert is_lookalike(one, other) is is_lookalike(other, one) is alike


@pytest.mark.parametrize(
    ("name", "is_mixed"),
    [
        ("ann", False),
        ("анна", False),
        ("άννα", False),
        ("小明-ann", False),
        ("writer-2", False),
        ("\u0430nn", True),
        ("ann\u03b1", True),
        ("анна\u03b1", True),
    ],
)
def test_a_name_is_mixed_that_has_letters_of_scripts_that_look_alike(name: str, is_mixed: bool) -> None:
    assert has_mixed_scripts(name) is is_mixed
