"""What moves from the team state to the query tables: ended steps, stages and tasks, messages, notes, artifact
versions.

A projection: computed from an event and the state before it, so it can be rebuilt from the log at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from greenroom.core.base.records import Record
from greenroom.core.state import stage as stages
from greenroom.core.state import step as steps
from greenroom.core.state import task as tasks
from greenroom.core.state.events import Event
from greenroom.core.state.knowledge import Artifact, ArtifactWritten, Note, NotePosted
from greenroom.core.state.message import Message, MessageSent
from greenroom.core.state.stage import Stage, StageEnded
from greenroom.core.state.step import Step, StepEnded
from greenroom.core.state.task import Task, TaskEnded
from greenroom.core.state.team_state import TeamState, artifact_key

ArchiveKind = Literal["task", "stage", "step", "message", "note", "artifact"]
ArchivedRecord = Task | Stage | Step | Message | Note | Artifact


class ArchiveEntry(Record, frozen=True):
    """One row. `owner` is the key for lookups: a step's thread, or the task of a message, note or artifact.

    The record is built on access. Rows of steps are not stored: the log links each ended step of a thread to the
    one before it.
    """

    kind: ArchiveKind
    key: str
    owner: str
    make: Callable[..., ArchivedRecord]
    made_of: tuple[object, ...]

    @property
    def record(self) -> ArchivedRecord:
        """The archived record."""
        return self.make(*self.made_of)


def _archive_task(state: TeamState, event: TaskEnded) -> ArchiveEntry:
    return ArchiveEntry("task", event.task_id, "", tasks.apply_end, (state.tasks[event.task_id], event))


def _archive_stage(state: TeamState, event: StageEnded) -> ArchiveEntry:
    stage = state.stages[event.stage_id]
    return ArchiveEntry("stage", stage.stage_id, stage.task_id, stages.apply_end, (stage, event))


def _archive_step(state: TeamState, event: StepEnded) -> ArchiveEntry:
    return ArchiveEntry(
        "step", event.step_id, event.thread_id, steps.apply_end, (state.steps[event.step_id], event, state.version + 1)
    )


def _archive_message(_: TeamState, event: MessageSent) -> ArchiveEntry:
    return ArchiveEntry("message", event.message.message_id, event.message.task_id, _return_record, (event.message,))


def _archive_note(_: TeamState, event: NotePosted) -> ArchiveEntry:
    return ArchiveEntry("note", event.note.note_id, event.note.task_id, _return_record, (event.note,))


def _archive_artifact(_: TeamState, event: ArtifactWritten) -> ArchiveEntry:
    artifact = event.artifact
    key = f"{artifact_key(artifact.task_id, artifact.artifact_id)}@{artifact.version}"
    return ArchiveEntry("artifact", key, artifact.task_id, _return_record, (artifact,))


def _return_record(record: ArchivedRecord) -> ArchivedRecord:
    return record


_ROW_BUILDERS: Final[dict[type, Callable[[TeamState, Any], ArchiveEntry]]] = {
    TaskEnded: _archive_task,
    StageEnded: _archive_stage,
    StepEnded: _archive_step,
    MessageSent: _archive_message,
    NotePosted: _archive_note,
    ArtifactWritten: _archive_artifact,
}


def build_archive_row(before: TeamState, event: Event) -> ArchiveEntry | None:
    """Return the row that `event` moves out of the team state, or None."""
    build_row = _ROW_BUILDERS.get(type(event))
    return build_row(before, event) if build_row else None
