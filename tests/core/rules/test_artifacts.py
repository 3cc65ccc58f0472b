"""The artifacts of a task: versions, who writes them, and that no update is lost."""

import pytest

from greenroom.core.base.ids import AgentId, ArtifactId, TaskId
from greenroom.core.base.records import evolve
from greenroom.core.rules import knowledge
from greenroom.core.rules.intents import AddTask, FinishStep, FinishTask, WriteArtifact
from greenroom.core.state.artifact import Artifact, ArtifactWritten, told
from greenroom.core.state.step import StepEnded
from greenroom.core.state.thread import Noticed
from tests.core.house import ANN, BOB, BOSS, T1, T2, House

PLAN = WriteArtifact(
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
    (plan,) = written("a1", "b2", "c3").world.inventory(T1)
    assert (plan.version, plan.blob, plan.earlier, plan.by) == (3, "c3", ("a1", "b2"), ANN)
    assert [plan.blob_of(version) for version in (0, 1, 2, 3, 4)] == [None, "a1", "b2", "c3", None]


@pytest.mark.req("AF-66")
def test_the_inventory_lists_the_artifacts_of_one_task_by_id() -> None:
    house = written("a1").do(AddTask(name="more", intention="more", manager=BOSS, group=(ANN,)))
    house.queue(ANN).write(ANN, evolve(PLAN, artifact_id=ArtifactId("main.py"), title="Code", lines=1))
    house.queue(ANN, task=T2).write(ANN, evolve(PLAN, task_id=T2))
    assert [one.artifact_id for one in house.world.inventory(T1)] == ["main.py", "task_plan"]
    assert house.world.inventory(TaskId("t9")) == ()
    assert [told(one) for one in house.world.inventory(T1)] == [
        "main.py · Code · text/markdown · version 1 by ann · 1 line, 12 bytes",
        "task_plan · Plan · text/markdown · version 1 by ann · 2 lines, 12 bytes",
    ]


def test_every_version_is_in_the_archive_and_the_world_forgets_them_with_the_task() -> None:
    house = written("a1", "b2").do(FinishTask(task_id=T1))
    assert not house.world.artifacts
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
    house.do(FinishStep(step_id=step.step_id, attempt=step.attempt, intents=(PLAN,), blobs=blobs), by=ANN)
    assert house.codes() == ["content_not_kept"]
    house.refused("content_not_kept", PLAN)


def test_only_the_group_writes() -> None:
    house = House.furnished().do(AddTask(name="more", intention="more", manager=BOSS))
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
    large = evolve(PLAN, size=knowledge.LARGEST + 1)
    assert "1,048,577 bytes; 1,048,576 are allowed" in str(
        House.furnished().refused("artifact_too_large", large, by=ANN)
    )


def test_there_is_an_end_to_artifacts_and_to_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge, "MOST_ARTIFACTS", 1)
    monkeypatch.setattr(knowledge, "VERSIONS", 2)
    house = written("a1", "b2")
    house.refused("too_many_artifacts", evolve(PLAN, artifact_id=ArtifactId("more")), by=ANN)
    house.refused("too_many_versions", evolve(PLAN, based_on=2), by=ANN)
