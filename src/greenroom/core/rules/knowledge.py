"""Rules for what a team knows: the task board, the threads' windows and workspaces, artifacts, memories."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, MemoryId, TaskId, memory_id, note_id
from greenroom.core.base.records import evolve
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, unknown
from greenroom.core.rules.intents import (
    ClearMemory,
    MoveWindow,
    PostNote,
    SaveMemory,
    SetValue,
    SetWorkspace,
    WriteArtifact,
)
from greenroom.core.state.knowledge import (
    Artifact,
    ArtifactWritten,
    MemoriesCleared,
    Memory,
    MemorySaved,
    Note,
    NotePosted,
    Value,
    ValueSet,
)
from greenroom.core.state.origin import merged
from greenroom.core.state.thread import Thread, WindowMoved, WorkspaceSet
from greenroom.core.state.world import World, artifact_key, value_key


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


LARGEST: Final = 1_048_576
"""Bytes of an artifact."""

MOST_ARTIFACTS: Final = 200
"""Artifacts of a task."""

VERSIONS: Final = 1_000
"""Versions of an artifact. Whoever has written it so often does not get anywhere."""

LONGEST_ID: Final = 120
"""Characters of its id, its title and its media type."""


def write_artifact(draft: Draft, intent: WriteArtifact, by: str) -> Verdict:
    """One more version of an artifact, or its first."""
    refused = refusal(draft.world, intent, by)
    if refused is not None:
        return refused
    if draft.cause is None or intent.blob not in draft.cause.blobs:
        why = f"The content of {intent.artifact_id!r} is not kept: only a step that has kept it can write it."
        return Rejected(code="content_not_kept", why=why)
    old = draft.world.artifacts.get(artifact_key(intent.task_id, intent.artifact_id))
    artifact = Artifact(
        task_id=intent.task_id,
        artifact_id=intent.artifact_id,
        title=intent.title,
        media_type=intent.media_type,
        blob=intent.blob,
        size=intent.size,
        lines=intent.lines,
        by=by,
        at=draft.now,
        version=intent.based_on + 1,
        origins=merged(old.origins if old is not None else (), draft.read),
    )
    draft.emit(ArtifactWritten(at=draft.now, artifact=artifact))
    return None


def refusal(world: World, intent: WriteArtifact, by: str) -> Verdict:
    """Why it cannot be written in this world. A tool asks beforehand, so that its agent hears of it at once."""
    refused = may_write(world, intent.task_id, by) or _artifact_misfit(intent)
    if refused is not None:
        return refused
    old = world.artifacts.get(artifact_key(intent.task_id, intent.artifact_id))
    if old is None:
        return _first(world, intent)
    if intent.based_on != old.version:
        return _not_so(intent, old)
    if old.version >= VERSIONS:
        why = f"The artifact {old.artifact_id!r} was written {VERSIONS:,} times, which is all that is allowed."
        return Rejected(code="too_many_versions", why=why, hint="Begin another one if there is still a need.")
    return None


def _first(world: World, intent: WriteArtifact) -> Verdict:
    here = world.inventory(intent.task_id)
    if intent.based_on:
        known = ", ".join(one.artifact_id for one in here[:12]) or "none"
        why = f"There is no artifact {intent.artifact_id!r} in this task."
        return Rejected(code="unknown_artifact", why=why, hint=f"There are: {known}. create_artifact makes one.")
    if len(here) >= MOST_ARTIFACTS:
        why = f"This task has {MOST_ARTIFACTS} artifacts, which is all that is allowed."
        return Rejected(code="too_many_artifacts", why=why, hint="Write into one of them.")
    return None


def _not_so(intent: WriteArtifact, old: Artifact) -> Rejected:
    """It was not made from what is there."""
    there = f"version {old.version} by {old.by}"
    if not intent.based_on:
        why = f"There is an artifact {old.artifact_id!r} already ({there})."
        return Rejected(code="artifact_exists", why=why, hint="Change it with update_artifact, or take another id.")
    why = f"The artifact {old.artifact_id!r} is at {there}; this was made from version {intent.based_on}."
    hint = "Nothing was written. Read it with read_artifact, then change what is there now."
    return Rejected(code="artifact_changed", why=why, hint=hint)


def _artifact_misfit(intent: WriteArtifact) -> Verdict:
    for name, text in (("id", intent.artifact_id), ("title", intent.title), ("media type", intent.media_type)):
        if not text.strip() or text != text.strip() or len(text) > LONGEST_ID or not text.isprintable():
            why = (
                f"The {name} of an artifact is one line of {LONGEST_ID} characters at most, not {text[:LONGEST_ID]!r}."
            )
            return Rejected(code="bad_artifact", why=why, hint="Take something like 'task_plan' or 'main.py'.")
    if ".." in intent.artifact_id.split("/") or intent.artifact_id.startswith("/") or "\\" in intent.artifact_id:
        why = f"An artifact is no file and has no path: {intent.artifact_id!r} cannot be its id."
        return Rejected(code="bad_artifact", why=why, hint="Take something like 'task_plan' or 'main.py'.")
    if intent.size > LARGEST:
        why = f"The artifact {intent.artifact_id!r} would have {intent.size:,} bytes; {LARGEST:,} are allowed."
        return Rejected(code="artifact_too_large", why=why, hint="Cut it, or make several of it.")
    return None


MOST_MEMORIES: Final = 1_000
"""Memories that a team has at once."""

LONGEST_MEMORY: Final = 20_000
"""Characters of one memory."""

TAGS: Final = 20
TAG: Final = 60
"""Tags of a memory, and characters of a tag."""


def save_memory(draft: Draft, intent: SaveMemory, by: str) -> Verdict:
    """A new memory, or another content for an old one; those it is merged from go."""
    refused = _may_remember(draft.world, by) or _memory_misfit(intent) or _missing(draft.world, intent)
    if refused is not None:
        return refused
    old = draft.world.memories[intent.memory_id] if intent.memory_id is not None else None
    replaced = tuple(name for name in dict.fromkeys(intent.merged_from) if name != intent.memory_id)
    if old is None and len(draft.world.memories) - len(replaced) >= MOST_MEMORIES:
        why = f"The short-term memory is full: it holds {MOST_MEMORIES:,} memories."
        return Rejected(code="memory_full", why=why, hint="Clear or merge some first.")
    if old is not None:
        memory = evolve(old, content=intent.content, tags=intent.tags, updated_at=draft.now)
    else:
        memory = Memory(
            memory_id=memory_id(draft.now, draft.world.team.last_memory),
            type="short_term",
            content=intent.content,
            tags=intent.tags,
            created_at=draft.now,
            by=by,
        )
    origins = memory.origins
    for name in replaced:
        origins = merged(origins, draft.world.memories[name].origins)
    memory = evolve(
        memory,
        merged_from=tuple(dict.fromkeys((*memory.merged_from, *replaced))),
        origins=merged(origins, draft.read),
    )
    draft.emit(MemorySaved(at=draft.now, memory=memory))
    return None


def clear_memory(draft: Draft, intent: ClearMemory, by: str) -> Verdict:
    """These go. One that somebody else has cleared meanwhile is gone as it should be; but one at least was there."""
    refused = _may_remember(draft.world, by)
    if refused is not None:
        return refused
    there = tuple(one for one in dict.fromkeys(intent.memory_ids) if one in draft.world.memories)
    if not there:
        return _unknown(intent.memory_ids)
    draft.emit(MemoriesCleared(at=draft.now, memory_ids=there))
    return None


def _may_remember(world: World, by: str) -> Verdict:
    if AgentId(by) in world.agents or is_trusted(world, by):
        return None
    return Rejected(code="not_in_team", why=f"{by!r} is not in this team, whose memory it is.")


def _memory_misfit(intent: SaveMemory) -> Verdict:
    """What does not fit into a memory."""
    if not intent.content.strip():
        return Rejected(code="empty_memory", why="A memory without content is none.", hint="Say what to remember.")
    if len(intent.content) > LONGEST_MEMORY:
        why = f"The memory has {len(intent.content):,} characters; {LONGEST_MEMORY:,} are allowed."
        return Rejected(code="memory_too_long", why=why, hint="Save what matters of it, or make an artifact of it.")
    if len(intent.tags) > TAGS or not all(one.strip() and len(one) <= TAG for one in intent.tags):
        why = f"A memory has {TAGS} tags at most, none of them blank or longer than {TAG} characters."
        return Rejected(code="bad_tags", why=why, hint="Use a few short words that others would look for.")
    return None


def _missing(world: World, intent: SaveMemory) -> Verdict:
    named = (*((intent.memory_id,) if intent.memory_id is not None else ()), *intent.merged_from)
    gone = tuple(one for one in named if one not in world.memories)
    return _unknown(gone) if gone else None


def _unknown(names: tuple[MemoryId, ...]) -> Rejected:
    why = f"There is no memory {', '.join(map(repr, names[:5])) or 'to clear'} in the short-term memory."
    return Rejected(code="unknown_memory", why=why, hint="retrieve_memory shows the ids of those that there are.")
