"""The task board: short notes (MAS's shared message pool) and keyed values. Read when wanted, never pushed."""

from __future__ import annotations

from greenroom.core.base.ids import AgentId, NoteId, StageId, TaskId
from greenroom.core.base.records import record


@record
class Note:
    """One entry of the shared pool; it lives in the archive, the world only counts."""

    note_id: NoteId
    task_id: TaskId
    agent_id: AgentId
    role: str
    stage_id: StageId | None
    content: str
    posted_at: int


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
