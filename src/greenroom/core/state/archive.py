"""What leaves the world for the query tables: ended steps, stages and tasks, messages, notes, versions of artifacts.

A projection: computed from the world before an event and the event, so it can be rebuilt from the log at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from greenroom.core.state import stage as stages
from greenroom.core.state import step as steps
from greenroom.core.state import task as tasks
from greenroom.core.state.events import Event
from greenroom.core.state.knowledge import Artifact, ArtifactWritten, Note, NotePosted
from greenroom.core.state.message import Message, MessageSent
from greenroom.core.state.stage import Stage, StageEnded
from greenroom.core.state.step import Step, StepEnded
from greenroom.core.state.task import Task, TaskEnded
from greenroom.core.state.world import World, artifact_key

ArchiveKind = Literal["task", "stage", "step", "message", "note", "artifact"]
ArchivedRecord = Task | Stage | Step | Message | Note | Artifact


class Archived(NamedTuple):
    """One row: `owner` is what it is asked by (a step by its thread, what is said or written by its task).

    Its record is made when somebody looks. A step's row is told, not stored, and mostly nobody does: the log leads from
    one ended step of a thread to the one before it.
    """

    kind: ArchiveKind
    key: str
    owner: str
    make: Callable[..., ArchivedRecord]
    made_of: tuple[object, ...]

    @property
    def record(self) -> ArchivedRecord:
        """What leaves the world, as it is remembered."""
        return self.make(*self.made_of)


def _task(world: World, event: TaskEnded) -> Archived:
    return Archived("task", event.task_id, "", tasks.ended, (world.tasks[event.task_id], event))


def _stage(world: World, event: StageEnded) -> Archived:
    stage = world.stages[event.stage_id]
    return Archived("stage", stage.stage_id, stage.task_id, stages.ended, (stage, event))


def _step(world: World, event: StepEnded) -> Archived:
    return Archived(
        "step", event.step_id, event.thread_id, steps.ended, (world.steps[event.step_id], event, world.version + 1)
    )


def _message(_: World, event: MessageSent) -> Archived:
    return Archived("message", event.message.message_id, event.message.task_id, _itself, (event.message,))


def _note(_: World, event: NotePosted) -> Archived:
    return Archived("note", event.note.note_id, event.note.task_id, _itself, (event.note,))


def _artifact(_: World, event: ArtifactWritten) -> Archived:
    one = event.artifact
    key = f"{artifact_key(one.task_id, one.artifact_id)}@{one.version}"
    return Archived("artifact", key, one.task_id, _itself, (one,))


def _itself(record: ArchivedRecord) -> ArchivedRecord:
    return record


_ROWS: Final[dict[type, Callable[[World, Any], Archived]]] = {
    TaskEnded: _task,
    StageEnded: _stage,
    StepEnded: _step,
    MessageSent: _message,
    NotePosted: _note,
    ArtifactWritten: _artifact,
}


def archived(before: World, event: Event) -> Archived | None:
    """The row that `event` moves out of the world, if any."""
    row = _ROWS.get(type(event))
    return row(before, event) if row else None
