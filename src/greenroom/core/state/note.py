"""The task board: short notes (MAS's shared message pool) and keyed values. Read when wanted, never pushed."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.ids import AgentId, NoteId, StageId, TaskId, note_id
from greenroom.core.base.records import evolve, record


@record
class Note:
    """One entry of the shared pool; it lives in the archive, the world counts them and has the newest."""

    note_id: NoteId
    task_id: TaskId
    agent_id: AgentId
    role: str
    stage_id: StageId | None
    content: str
    posted_at: int


POOL: Final = 20
"""Notes of a task that can be asked for."""

SHOWN: Final = 300
"""Characters of each of them."""


def shown(note: Note) -> Note:
    """The note as it is told to those who ask: what is longer is in the archive only."""
    return evolve(note, content=f"{note.content[:SHOWN]}…") if len(note.content) > SHOWN else note


def pool(task: TaskId, made: int) -> tuple[NoteId, ...]:
    """The notes of a task that can be asked for when so many were made there, oldest first."""
    return tuple(note_id(task, number) for number in range(max(1, made - POOL + 1), made + 1))


@record
class Value:
    """Something the group knows under a key: the newest content and how often it was set."""

    task_id: TaskId
    key: str
    content: str
    set_by: str
    version: int = 1


@record
class NotePosted:
    """A note stands on the task's board."""

    at: int
    note: Note


@record
class ValueSet:
    """The board holds a new content under this key."""

    at: int
    value: Value


NoteEvent = NotePosted | ValueSet
