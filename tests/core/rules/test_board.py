"""The task board: notes, values; and a thread's window and workspace."""

import pytest

from greenroom.core.base.ids import TaskId, ThreadId
from greenroom.core.rules.intents import AddTask, CancelTask, FinishTask, MoveWindow, PostNote, SetValue, SetWorkspace
from greenroom.core.state.note import Note
from greenroom.core.state.step import Step
from tests.core.house import ANN, BOB, BOSS, DOOR, S1, T1, T2, House, skill, thread


@pytest.mark.req("MAS-48", "MAS-98")
def test_a_note_of_the_group_goes_to_the_shared_pool_with_who_and_where() -> None:
    house = House.furnished().queue(ANN).run(ANN, PostNote(task_id=T1, content="found it", stage_id=S1))
    (note,) = house.archived(Note)
    assert (note.note_id, note.agent_id, note.role, note.stage_id, note.content) == (
        "t1/n1",
        ANN,
        "writer",
        S1,
        "found it",
    )
    assert house.task().notes_made == 1


def test_a_person_at_a_door_writes_notes_without_a_role() -> None:
    house = House.furnished().do(PostNote(task_id=T1, content="one"), PostNote(task_id=T1, content="two"))
    assert [(note.note_id, note.agent_id, note.role) for note in house.archived(Note)] == [
        ("t1/n1", DOOR, ""),
        ("t1/n2", DOOR, ""),
    ]


def test_only_the_group_writes_on_the_board() -> None:
    house = House.furnished().do(AddTask(name="more", intention="more", manager=BOSS))
    house.refused("not_in_group", PostNote(task_id=T2, content="x"), by=ANN)
    house.refused("not_in_group", SetValue(task_id=T2, key="k", content="x"), by=ANN)
    house.refused("unknown_task", PostNote(task_id=TaskId("t9"), content="x"), by=ANN)


def test_a_value_keeps_the_newest_content_and_counts() -> None:
    house = House.furnished().do(SetValue(task_id=T1, key="port", content="80"), by=ANN)
    house.do(SetValue(task_id=T1, key="port", content="81"), by=BOB)
    (value,) = house.world.values.values()
    assert (value.content, value.set_by, value.version) == ("81", BOB, 2)


def test_values_go_with_their_task_and_others_stay() -> None:
    house = House.furnished().do(AddTask(name="more", intention="more", manager=BOSS))
    house.do(SetValue(task_id=T1, key="a", content="1"), SetValue(task_id=T2, key="a", content="2"))
    house.do(FinishTask(task_id=T1))
    assert [value.task_id for value in house.world.values.values()] == [T2]


def test_a_window_only_moves_forward() -> None:
    house = House.furnished().queue(ANN)
    name = thread(ANN, T1)
    house.do(MoveWindow(thread_id=name, window_from=3), by=ANN)
    assert house.world.threads[name].window_from == 3
    house.refused("window_backwards", MoveWindow(thread_id=name, window_from=2), by=ANN)


def test_a_step_that_sums_up_begins_the_window_with_itself_and_says_how_much_is_kept() -> None:
    name = thread(ANN, T1)
    house = House.furnished().queue(ANN, skill(), skill("converse", "sum up"))
    house.run(ANN).start(ANN)
    house.finish(ANN, MoveWindow(thread_id=name, size=9), result={"text": "in short"})
    here = house.world.threads[name]
    assert (here.window_from, here.size) == (here.last, 9)
    assert house.archived(Step)[-1].ended_in == here.last
    house.refused("bad_size", MoveWindow(thread_id=name, size=here.size + 1), by=ANN)
    house.refused("bad_size", MoveWindow(thread_id=name, size=-1), by=ANN)


def test_a_conversation_grows_by_all_that_a_result_holds() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.finish(ANN, result={"text": "", "calls": [{"arguments": {"content": "x" * 5000}}]})
    assert house.world.threads[thread(ANN, T1)].size > 5000


def test_a_workspace_belongs_to_its_thread() -> None:
    house = House.furnished().queue(ANN)
    house.do(SetWorkspace(thread_id=thread(ANN, T1), workspace={"path": "/w"}), by=ANN)
    assert house.world.threads[thread(ANN, T1)].workspace == {"path": "/w"}


def test_nobody_touches_somebody_elses_thread() -> None:
    house = House.furnished().queue(ANN)
    house.refused("not_yours", MoveWindow(thread_id=thread(ANN, T1), window_from=3), by=BOB)
    house.refused("not_yours", SetWorkspace(thread_id=thread(ANN, T1), workspace={}), by=BOB)
    house.refused("unknown_thread", SetWorkspace(thread_id=ThreadId("x"), workspace={}), by=BOB)


def test_a_note_is_still_taken_while_a_task_is_ending() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.do(CancelTask(task_id=T1)).do(PostNote(task_id=T1, content="so far"), by=ANN)
    assert len(house.archived(Note)) == 1
