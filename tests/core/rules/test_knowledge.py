"""The task board, artifacts and memories."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given

from greenroom.core.base.ids import AgentId, ArtifactId, MemoryId, TaskId, TeamId, ThreadId, memory_id
from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.rules import knowledge
from greenroom.core.state.knowledge import Artifact, ArtifactWritten, Memory, MemorySaved, Note, describe_artifact
from greenroom.core.state.step import Step, StepEnded
from greenroom.core.state.team import ForkOrigin
from greenroom.core.state.thread import Noticed
from tests.core.house import ANN, BOB, BOSS, DOOR, S1, T1, T2, House, skill, thread
from tests.core.test_properties import SAMPLE, SEEDS, busy_house


@pytest.mark.req("MAS-48", "MAS-98")
def test_a_note_of_the_group_goes_to_the_shared_pool_with_who_and_where() -> None:
    house = House.furnished().queue(ANN).run(ANN, i.PostNote(task_id=T1, content="found it", stage_id=S1))
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
    house = House.furnished().do(i.PostNote(task_id=T1, content="one"), i.PostNote(task_id=T1, content="two"))
    assert [(note.note_id, note.agent_id, note.role) for note in house.archived(Note)] == [
        ("t1/n1", DOOR, ""),
        ("t1/n2", DOOR, ""),
    ]


def test_only_the_group_writes_on_the_board() -> None:
    house = House.furnished().do(i.AddTask(name="more", intention="more", manager=BOSS))
    house.refused("not_in_group", i.PostNote(task_id=T2, content="x"), by=ANN)
    house.refused("not_in_group", i.SetValue(task_id=T2, key="k", content="x"), by=ANN)
    house.refused("unknown_task", i.PostNote(task_id=TaskId("t9"), content="x"), by=ANN)


def test_a_value_keeps_the_newest_content_and_counts() -> None:
    house = House.furnished().do(i.SetValue(task_id=T1, key="port", content="80"), by=ANN)
    house.do(i.SetValue(task_id=T1, key="port", content="81"), by=BOB)
    (value,) = house.state.values.values()
    assert (value.content, value.set_by, value.version) == ("81", BOB, 2)


def test_values_go_with_their_task_and_others_stay() -> None:
    house = House.furnished().do(i.AddTask(name="more", intention="more", manager=BOSS))
    house.do(i.SetValue(task_id=T1, key="a", content="1"), i.SetValue(task_id=T2, key="a", content="2"))
    house.do(i.FinishTask(task_id=T1))
    assert [value.task_id for value in house.state.values.values()] == [T2]


def test_a_window_only_moves_forward() -> None:
    house = House.furnished().queue(ANN)
    name = thread(ANN, T1)
    house.do(i.MoveWindow(thread_id=name, window_from=3), by=ANN)
    assert house.state.threads[name].window_from == 3
    house.refused("window_backwards", i.MoveWindow(thread_id=name, window_from=2), by=ANN)


def test_a_step_that_sums_up_begins_the_window_with_itself_and_says_how_much_is_kept() -> None:
    name = thread(ANN, T1)
    house = House.furnished().queue(ANN, skill(), skill("converse", "sum up"))
    house.run(ANN).start(ANN)
    house.finish(ANN, i.MoveWindow(thread_id=name, size=9), result={"text": "in short"})
    here = house.state.threads[name]
    assert (here.window_from, here.size) == (here.last, 9)
    assert house.archived(Step)[-1].ended_in == here.last
    house.refused("bad_size", i.MoveWindow(thread_id=name, size=here.size + 1), by=ANN)
    house.refused("bad_size", i.MoveWindow(thread_id=name, size=-1), by=ANN)


def test_a_conversation_grows_by_all_that_a_result_holds() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.finish(ANN, result={"text": "", "calls": [{"arguments": {"content": "x" * 5000}}]})
    assert house.state.threads[thread(ANN, T1)].size > 5000


def test_a_workspace_belongs_to_its_thread() -> None:
    house = House.furnished().queue(ANN)
    house.do(i.SetWorkspace(thread_id=thread(ANN, T1), workspace={"path": "/w"}), by=ANN)
    assert house.state.threads[thread(ANN, T1)].workspace == {"path": "/w"}


def test_nobody_touches_somebody_elses_thread() -> None:
    house = House.furnished().queue(ANN)
    house.refused("not_yours", i.MoveWindow(thread_id=thread(ANN, T1), window_from=3), by=BOB)
    house.refused("not_yours", i.SetWorkspace(thread_id=thread(ANN, T1), workspace={}), by=BOB)
    house.refused("unknown_thread", i.SetWorkspace(thread_id=ThreadId("x"), workspace={}), by=BOB)


def test_a_note_is_still_taken_while_a_task_is_ending() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.do(i.CancelTask(task_id=T1)).do(i.PostNote(task_id=T1, content="so far"), by=ANN)
    assert len(house.archived(Note)) == 1


PLAN = i.WriteArtifact(
    task_id=T1,
    artifact_id=ArtifactId("task_plan"),
    title="Plan",
    media_type="text/markdown",
    blob="a1",
    size=12,
    lines=2,
)


def written(*blobs: str) -> House:
    """A house with a plan of so many versions, by Ann."""
    house = House.furnished()
    for version, blob in enumerate(blobs):
        house.queue(ANN).write(ANN, evolve(PLAN, blob=blob, based_on=version))
    return house


@pytest.mark.req("AF-66")
def test_an_artifact_keeps_its_newest_version_and_knows_all_before_it() -> None:
    (plan,) = written("a1", "b2", "c3").state.list_artifacts(T1)
    assert (plan.version, plan.blob, plan.earlier, plan.by) == (3, "c3", ("a1", "b2"), ANN)
    assert [plan.blob_of(version) for version in (0, 1, 2, 3, 4)] == [None, "a1", "b2", "c3", None]


@pytest.mark.req("AF-66")
def test_the_inventory_lists_the_artifacts_of_one_task_by_id() -> None:
    house = written("a1").do(i.AddTask(name="more", intention="more", manager=BOSS, group=(ANN,)))
    house.queue(ANN).write(ANN, evolve(PLAN, artifact_id=ArtifactId("main.py"), title="Code", lines=1))
    house.queue(ANN, task=T2).write(ANN, evolve(PLAN, task_id=T2))
    assert [one.artifact_id for one in house.state.list_artifacts(T1)] == ["main.py", "task_plan"]
    assert house.state.list_artifacts(TaskId("t9")) == ()
    assert [describe_artifact(one) for one in house.state.list_artifacts(T1)] == [
        "main.py · Code · text/markdown · version 1 by ann · 1 line, 12 bytes",
        "task_plan · Plan · text/markdown · version 1 by ann · 2 lines, 12 bytes",
    ]


def test_every_version_is_in_the_archive_and_the_world_forgets_them_with_the_task() -> None:
    house = written("a1", "b2").do(i.FinishTask(task_id=T1))
    assert not house.state.artifacts
    found = house.archived(Artifact)
    assert [(one.version, one.blob, one.earlier) for one in found] == [(1, "a1", ()), (2, "b2", ())]


def test_an_update_from_an_older_version_is_refused_and_its_agent_reads_why() -> None:
    house = written("a1", "b2").queue(BOB).write(BOB, evolve(PLAN, blob="x", based_on=1))
    assert house.codes() == ["artifact_changed"]
    (notice,) = house.happened(Noticed)
    assert "is at version 2 by ann; this was made from version 1" in notice.text
    assert "Read it with read_artifact" in notice.text
    assert house.happened(StepEnded)[0].state == "finished"
    assert not house.happened(ArtifactWritten)


def test_of_two_who_begin_the_same_the_second_hears_of_the_first() -> None:
    house = written("a1").queue(BOB).write(BOB, evolve(PLAN, blob="x"))
    assert house.codes() == ["artifact_exists"]


def test_what_is_not_there_is_not_changed() -> None:
    house = written("a1").queue(ANN).write(ANN, evolve(PLAN, artifact_id=ArtifactId("plan"), based_on=1))
    assert house.codes() == ["unknown_artifact"]
    assert "There are: task_plan." in house.happened(Noticed)[0].text


@pytest.mark.parametrize("blobs", [(), ("other",)])
def test_nothing_is_written_whose_content_is_not_kept(blobs: tuple[str, ...]) -> None:
    house = House.furnished().queue(ANN)
    step = house.start(ANN)
    house.do(i.FinishStep(step_id=step.step_id, attempt=step.attempt, intents=(PLAN,), blobs=blobs), by=ANN)
    assert house.codes() == ["content_not_kept"]
    house.refused("content_not_kept", PLAN)


def test_only_the_group_writes() -> None:
    house = House.furnished().do(i.AddTask(name="more", intention="more", manager=BOSS))
    house.refused("not_in_group", evolve(PLAN, task_id=T2), by=ANN)
    house.refused("unknown_task", evolve(PLAN, task_id=TaskId("t9")), by=ANN)
    house.refused("not_in_group", PLAN, by=AgentId("ghost"))


@pytest.mark.parametrize(
    "odd",
    [
        {"artifact_id": ""},
        {"artifact_id": " plan"},
        {"artifact_id": "a\nb"},
        {"artifact_id": "x" * 121},
        {"artifact_id": "../x"},
        {"artifact_id": "a/../../x"},
        {"artifact_id": "/etc/passwd"},
        {"artifact_id": "..\\x"},
        {"title": ""},
        {"media_type": "\x1b[2J"},
    ],
)
def test_what_has_no_proper_name_is_refused(odd: dict[str, str]) -> None:
    House.furnished().refused("bad_artifact", evolve(PLAN, **odd), by=ANN)


def test_what_is_too_large_is_refused_with_both_numbers() -> None:
    large = evolve(PLAN, size=knowledge.MAX_ARTIFACT_BYTES + 1)
    assert "1,048,577 bytes; 1,048,576 are allowed" in str(
        House.furnished().refused("artifact_too_large", large, by=ANN)
    )


def test_there_is_an_end_to_artifacts_and_to_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge, "MAX_ARTIFACTS_PER_TASK", 1)
    monkeypatch.setattr(knowledge, "MAX_ARTIFACT_VERSIONS", 2)
    house = written("a1", "b2")
    house.refused("too_many_artifacts", evolve(PLAN, artifact_id=ArtifactId("more")), by=ANN)
    house.refused("too_many_versions", evolve(PLAN, based_on=2), by=ANN)


NOWHERE = MemoryId("20251101_072947_388226")


def saved(house: House) -> list[Memory]:
    """All memories, oldest first."""
    return [memory for _, memory in sorted(house.state.memories.items())]


@pytest.mark.req("AG-82", "AG-86")
def test_what_one_agent_saves_the_team_remembers_with_all_fields() -> None:
    house = House.furnished().queue(ANN).run(ANN, i.SaveMemory(content="slow API", tags=("api",)))
    (memory,) = saved(house)
    assert (memory.type, memory.content, memory.tags, memory.by) == ("short_term", "slow API", ("api",), ANN)
    assert (memory.created_at, memory.updated_at, memory.merged_from) == (house.now, None, ())


@pytest.mark.req("AG-82")
def test_memories_outlive_their_task_and_a_fork_has_its_own() -> None:
    house = House.furnished().do(i.SaveMemory(content="kept"), by=ANN).do(i.FinishTask(task_id=T1))
    assert [one.content for one in saved(house)] == ["kept"]
    before = house.state
    house.do(i.ForkTeam(team_id=TeamId("fork"), origin=ForkOrigin(team_id=TeamId("team"), version=house.state.version)))
    house.do(i.SaveMemory(content="only here"), by=ANN)
    assert [one.content for one in saved(house)] == ["kept", "only here"]
    assert len(before.memories) == 1


@pytest.mark.req("AG-87")
def test_an_id_is_the_time_to_the_microsecond() -> None:
    assert memory_id(1_761_982_187_388, "") == "20251101_072947_388000"
    assert memory_id(1_761_982_187_388, "20251101_072947_388000") == "20251101_072947_388001"
    assert memory_id(0, "20251231_235959_999999") == "20260101_000000_000000"


@pytest.mark.req("AG-87")
@given(seed=SEEDS)
@SAMPLE
def test_no_two_memories_ever_have_the_same_id(seed: int) -> None:
    house = busy_house(Random(seed), 60)
    for number in range(5):
        house.later(-1000).do(i.SaveMemory(content=f"m{number}"), by="door")
        house.do(i.ClearMemory(memory_ids=(MemoryId(house.state.team.last_memory),)), by="door")
    new = [e.memory.memory_id for e in house.log if isinstance(e, MemorySaved) and e.memory.updated_at is None]
    assert len(new) == len(set(new))
    assert new == sorted(new)
    assert all(re.fullmatch(r"\d{8}_\d{6}_\d{6}", one) for one in new)


@pytest.mark.req("AG-86")
def test_a_memory_gets_another_content_and_says_when() -> None:
    house = House.furnished().do(i.SaveMemory(content="old", tags=("a",)), by=ANN)
    (old,) = saved(house)
    house.later(9).do(i.SaveMemory(content="new", memory_id=old.memory_id), by=BOB)
    (new,) = saved(house)
    assert (new.memory_id, new.content, new.tags, new.by) == (old.memory_id, "new", (), ANN)
    assert (new.created_at, new.updated_at) == (old.created_at, old.created_at + 9)


@pytest.mark.req("AG-86")
def test_merged_memories_make_place_for_the_one_that_names_them() -> None:
    house = House.furnished().do(i.SaveMemory(content="one"), i.SaveMemory(content="two"), by=ANN)
    names = tuple(one.memory_id for one in saved(house))
    house.do(i.SaveMemory(content="both", merged_from=(*names, names[0])), by=ANN)
    (both,) = saved(house)
    assert (both.content, both.merged_from) == ("both", names)
    house.do(i.SaveMemory(content="more"), by=ANN)
    more = saved(house)[-1].memory_id
    house.do(i.SaveMemory(content="all", memory_id=both.memory_id, merged_from=(both.memory_id, more)), by=ANN)
    (whole,) = saved(house)
    assert whole.merged_from == (*names, more)


@pytest.mark.parametrize(
    ("code", "intent"),
    [
        ("empty_memory", i.SaveMemory(content=" \n")),
        ("memory_too_long", i.SaveMemory(content="x" * (knowledge.MAX_MEMORY_CHARS + 1))),
        ("bad_tags", i.SaveMemory(content="x", tags=(" ",))),
        ("bad_tags", i.SaveMemory(content="x", tags=("x" * (knowledge.MAX_TAG_CHARS + 1),))),
        ("bad_tags", i.SaveMemory(content="x", tags=tuple(f"t{number}" for number in range(knowledge.MAX_TAGS + 1)))),
        ("unknown_memory", i.SaveMemory(content="x", memory_id=NOWHERE)),
        ("unknown_memory", i.SaveMemory(content="x", merged_from=(NOWHERE,))),
        ("unknown_memory", i.ClearMemory(memory_ids=(NOWHERE,))),
        ("unknown_memory", i.ClearMemory(memory_ids=())),
    ],
)
def test_what_is_no_memory_is_refused(code: str, intent: i.SaveMemory | i.ClearMemory) -> None:
    House.furnished().refused(code, intent, by=ANN)


def test_nobody_from_outside_writes_in_it_but_a_person_does() -> None:
    house = House.furnished()
    house.refused("not_in_team", i.SaveMemory(content="x"), by=AgentId("ghost"))
    house.do(i.SaveMemory(content="x"))
    house.refused("not_in_team", i.ClearMemory(memory_ids=tuple(house.state.memories)), by=AgentId("ghost"))


def test_a_full_memory_says_what_to_do_and_can_still_be_tidied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge, "MAX_MEMORIES", 2)
    house = House.furnished().do(i.SaveMemory(content="one"), i.SaveMemory(content="two"), by=ANN)
    assert "Clear or merge some first" in str(house.refused("memory_full", i.SaveMemory(content="three"), by=ANN))
    first, second = sorted(house.state.memories)
    house.do(i.SaveMemory(content="still two", memory_id=first), by=ANN)
    house.do(i.SaveMemory(content="both", merged_from=(first, second)), by=ANN)
    assert len(house.state.memories) == 1


@pytest.mark.req("AG-88")
def test_what_is_cleared_is_gone_also_when_some_of_it_was_gone_before() -> None:
    house = House.furnished().do(i.SaveMemory(content="one"), i.SaveMemory(content="two"), by=ANN)
    first, second = sorted(house.state.memories)
    house.do(i.ClearMemory(memory_ids=(first,)), by=BOB)
    house.do(i.ClearMemory(memory_ids=(first, second)), by=ANN)
    assert not house.state.memories


def test_a_refused_memory_is_read_by_its_agent() -> None:
    house = House.furnished().queue(ANN).run(ANN, i.SaveMemory(content=""))
    assert house.codes() == ["empty_memory"]


def test_a_person_goes_back_to_the_content_of_an_earlier_version() -> None:
    house = written("a1", "b2").do(evolve(PLAN, blob="a1", based_on=2, reason="back to version 1"))
    (plan,) = house.state.list_artifacts(T1)
    assert (plan.version, plan.blob, plan.by, plan.step, plan.reason) == (3, "a1", "person", "", "back to version 1")
    assert house.archived(Artifact)[0].step == "ann#1"
    house.refused("content_not_kept", evolve(PLAN, blob="zz", based_on=3))
    house.refused("content_not_kept", evolve(PLAN, blob="a1", based_on=3), by=ANN)
