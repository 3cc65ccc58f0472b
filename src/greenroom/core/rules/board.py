"""Rules for the task board, the threads' windows and workspaces."""

from __future__ import annotations

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, TaskId, note_id
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, unknown
from greenroom.core.rules.intents import MoveWindow, PostNote, SetValue, SetWorkspace
from greenroom.core.state.note import Note, NotePosted, Value, ValueSet
from greenroom.core.state.thread import Thread, WindowMoved, WorkspaceSet
from greenroom.core.state.world import World, value_key


def may_write(world: World, task_id: TaskId, by: str) -> Verdict:
    """Only a task's group writes on its board."""
    task = world.tasks.get(task_id)
    if task is None:
        return unknown("task", task_id, tuple(world.tasks))
    if by not in task.group and not is_trusted(world, by):
        return Rejected(code="not_in_group", why=f"{by!r} is not in the group of task {task_id!r}.")
    return None


def post_note(draft: Draft, intent: PostNote, by: str) -> Verdict:
    """A note on the board, readable by the whole group when it wants to."""
    refused = may_write(draft.world, intent.task_id, by)
    if refused is not None:
        return refused
    agent = draft.world.agents.get(AgentId(by))
    note = Note(
        note_id=note_id(intent.task_id, draft.world.tasks[intent.task_id].notes_made + 1),
        task_id=intent.task_id,
        agent_id=AgentId(by),
        role=agent.spec.role if agent else "",
        stage_id=intent.stage_id,
        content=intent.content,
        posted_at=draft.now,
    )
    draft.emit(NotePosted(at=draft.now, note=note))
    return None


def set_value(draft: Draft, intent: SetValue, by: str) -> Verdict:
    """A value on the board; the newest one counts."""
    refused = may_write(draft.world, intent.task_id, by)
    if refused is not None:
        return refused
    old = draft.world.values.get(value_key(intent.task_id, intent.key))
    value = Value(
        task_id=intent.task_id,
        key=intent.key,
        content=intent.content,
        set_by=by,
        version=old.version + 1 if old else 1,
    )
    draft.emit(ValueSet(at=draft.now, value=value))
    return None


def _own_thread(draft: Draft, intent: MoveWindow | SetWorkspace, by: str) -> Thread | Rejected:
    thread = draft.world.threads.get(intent.thread_id)
    if thread is None:
        return unknown("thread", intent.thread_id)
    if by != thread.agent_id and not is_trusted(draft.world, by):
        return Rejected(code="not_yours", why=f"Thread {intent.thread_id!r} belongs to {thread.agent_id!r}.")
    return thread


def move_window(draft: Draft, intent: MoveWindow, by: str) -> Verdict:
    """A window's start only moves forward."""
    thread = _own_thread(draft, intent, by)
    if isinstance(thread, Rejected):
        return thread
    begin = thread.last if intent.window_from is None else intent.window_from
    if begin < thread.window_from:
        return Rejected(code="window_backwards", why=f"The window begins at version {thread.window_from} already.")
    if not 0 <= intent.size <= thread.size:
        return Rejected(code="bad_size", why=f"The window has {thread.size} characters and cannot keep {intent.size}.")
    moved = WindowMoved(at=draft.now, thread_id=thread.thread_id, window_from=begin, size=intent.size)
    draft.emit(moved)
    return None


def set_workspace(draft: Draft, intent: SetWorkspace, by: str) -> Verdict:
    """Where the thread's files are."""
    thread = _own_thread(draft, intent, by)
    if isinstance(thread, Rejected):
        return thread
    draft.emit(WorkspaceSet(at=draft.now, thread_id=thread.thread_id, workspace=intent.workspace))
    return None
