"""What leaves the world for the query tables: ended steps, stages and tasks, sent messages, posted notes.

A projection: computed from the world before an event and the event, so it can be rebuilt from the log at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from greenroom.core.base.records import record
from greenroom.core.state import stage as stages
from greenroom.core.state import step as steps
from greenroom.core.state import task as tasks
from greenroom.core.state.events import Event
from greenroom.core.state.message import Message, MessageSent
from greenroom.core.state.note import Note, NotePosted
from greenroom.core.state.stage import Stage, StageEnded
from greenroom.core.state.step import Step, StepEnded
from greenroom.core.state.task import Task, TaskEnded
from greenroom.core.state.world import World

ArchiveKind = Literal["task", "stage", "step", "message", "note"]
ArchivedRecord = Task | Stage | Step | Message | Note


@record
class Archived:
    """One row: `owner` is what it is asked by (a step by its thread, a message or note by its task).

    A step's row is told, not stored: the log leads from one ended step of a thread to the one before it.
    """

    kind: ArchiveKind
    key: str
    owner: str
    record: ArchivedRecord


def _task(world: World, event: TaskEnded) -> Archived:
    task = tasks.ended(world.tasks[event.task_id], event)
    return Archived(kind="task", key=task.task_id, owner="", record=task)


def _stage(world: World, event: StageEnded) -> Archived:
    stage = stages.ended(world.stages[event.stage_id], event)
    return Archived(kind="stage", key=stage.stage_id, owner=stage.task_id, record=stage)


def _step(world: World, event: StepEnded) -> Archived:
    step = steps.ended(world.steps[event.step_id], event)
    return Archived(kind="step", key=step.step_id, owner=step.thread_id, record=step)


def _message(_: World, event: MessageSent) -> Archived:
    message = event.message
    return Archived(kind="message", key=message.message_id, owner=message.task_id, record=message)


def _note(_: World, event: NotePosted) -> Archived:
    return Archived(kind="note", key=event.note.note_id, owner=event.note.task_id, record=event.note)


_ROWS: Final[dict[type, Callable[[World, Any], Archived]]] = {
    TaskEnded: _task,
    StageEnded: _stage,
    StepEnded: _step,
    MessageSent: _message,
    NotePosted: _note,
}


def archived(before: World, event: Event) -> Archived | None:
    """The row that `event` moves out of the world, if any."""
    row = _ROWS.get(type(event))
    return row(before, event) if row else None
