"""Rules for what a team knows: the task board, windows and workspaces of threads, artifacts, memories."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.errors import Rejection
from greenroom.core.base.ids import AgentId, MemoryId, TaskId, memory_id, note_id
from greenroom.core.base.records import evolve
from greenroom.core.rules.draft import Draft, RuleResult, is_trusted, reject_unknown
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
    BoardValue,
    MemoriesCleared,
    Memory,
    MemorySaved,
    Note,
    NotePosted,
    ValueSet,
)
from greenroom.core.state.origin import merge_labels
from greenroom.core.state.team_state import TeamState, artifact_key, value_key
from greenroom.core.state.thread import Thread, WindowMoved, WorkspaceSet


def check_may_write(state: TeamState, task_id: TaskId, by: str) -> RuleResult:
    """Reject a sender outside the task's group."""
    task = state.tasks.get(task_id)
    if task is None:
        return reject_unknown("task", task_id, tuple(state.tasks))
    if by not in task.group and not is_trusted(state, by):
        return Rejection(code="not_in_group", why=f"{by!r} is not in the group of task {task_id!r}.")
    return None


def post_note(draft: Draft, intent: PostNote, by: str) -> RuleResult:
    """Post a note that the whole group can read on request."""
    refused = check_may_write(draft.state, intent.task_id, by)
    if refused is not None:
        return refused
    agent = draft.state.agents.get(AgentId(by))
    note = Note(
        note_id=note_id(intent.task_id, draft.state.tasks[intent.task_id].notes_made + 1),
        task_id=intent.task_id,
        agent_id=AgentId(by),
        role=agent.spec.role if agent else "",
        stage_id=intent.stage_id,
        content=intent.content,
        posted_at=draft.now,
    )
    draft.emit(NotePosted(at=draft.now, note=note))
    return None


def set_value(draft: Draft, intent: SetValue, by: str) -> RuleResult:
    """Set a board value. The newest one counts."""
    refused = check_may_write(draft.state, intent.task_id, by)
    if refused is not None:
        return refused
    old = draft.state.values.get(value_key(intent.task_id, intent.key))
    value = BoardValue(
        task_id=intent.task_id,
        key=intent.key,
        content=intent.content,
        set_by=by,
        version=old.version + 1 if old else 1,
    )
    draft.emit(ValueSet(at=draft.now, value=value))
    return None


def _find_own_thread(draft: Draft, intent: MoveWindow | SetWorkspace, by: str) -> Thread | Rejection:
    thread = draft.state.threads.get(intent.thread_id)
    if thread is None:
        return reject_unknown("thread", intent.thread_id)
    if by != thread.agent_id and not is_trusted(draft.state, by):
        return Rejection(code="not_yours", why=f"Thread {intent.thread_id!r} belongs to {thread.agent_id!r}.")
    return thread


def move_window(draft: Draft, intent: MoveWindow, by: str) -> RuleResult:
    """Move the start of a window. It only moves forward."""
    thread = _find_own_thread(draft, intent, by)
    if isinstance(thread, Rejection):
        return thread
    begin = thread.last if intent.window_from is None else intent.window_from
    if begin < thread.window_from:
        return Rejection(code="window_backwards", why=f"The window begins at version {thread.window_from} already.")
    if not 0 <= intent.size <= thread.size:
        return Rejection(code="bad_size", why=f"The window has {thread.size} characters and cannot keep {intent.size}.")
    draft.emit(WindowMoved(at=draft.now, thread_id=thread.thread_id, window_from=begin, size=intent.size))
    return None


def set_workspace(draft: Draft, intent: SetWorkspace, by: str) -> RuleResult:
    """Set a thread's workspace."""
    thread = _find_own_thread(draft, intent, by)
    if isinstance(thread, Rejection):
        return thread
    draft.emit(WorkspaceSet(at=draft.now, thread_id=thread.thread_id, workspace=intent.workspace))
    return None


PERSON: Final = "person"
"""The writer of a version that a person has restored."""

MAX_ARTIFACT_BYTES: Final = 1_048_576
"""Maximum bytes of an artifact."""

MAX_ARTIFACTS_PER_TASK: Final = 200
"""Maximum artifacts of a task."""

MAX_ARTIFACT_VERSIONS: Final = 1_000
"""Maximum versions of an artifact. An agent that writes more often makes no progress."""

MAX_ARTIFACT_NAME_CHARS: Final = 120
"""Maximum characters of an artifact's id, title and media type."""


def write_artifact(draft: Draft, intent: WriteArtifact, by: str) -> RuleResult:
    """Write the first or next version of an artifact."""
    refused = check_artifact(draft.state, intent, by)
    if refused is not None:
        return refused
    old = draft.state.artifacts.get(artifact_key(intent.task_id, intent.artifact_id))
    goes_back = old is not None and is_trusted(draft.state, by) and intent.blob in (*old.earlier, old.blob)
    if not goes_back and (draft.cause is None or intent.blob not in draft.cause.blobs):
        why = f"The content of {intent.artifact_id!r} is not kept: only a step that has kept it can write it."
        return Rejection(code="content_not_kept", why=why)
    artifact = Artifact(
        task_id=intent.task_id,
        artifact_id=intent.artifact_id,
        title=intent.title,
        media_type=intent.media_type,
        blob=intent.blob,
        size=intent.size,
        lines=intent.lines,
        by=by if AgentId(by) in draft.state.agents else PERSON,
        at=draft.now,
        version=intent.based_on + 1,
        origins=merge_labels(old.origins if old is not None else (), draft.read),
        step=draft.cause.step_id if draft.cause is not None else "",
        reason=intent.reason,
        citations=intent.citations,
    )
    draft.emit(ArtifactWritten(at=draft.now, artifact=artifact))
    return None


def check_artifact(state: TeamState, intent: WriteArtifact, by: str) -> RuleResult:
    """Return why the artifact cannot be written, or None. Tools call it first, so that the agent learns of it early."""
    refused = check_may_write(state, intent.task_id, by) or _check_artifact_fields(intent)
    if refused is not None:
        return refused
    old = state.artifacts.get(artifact_key(intent.task_id, intent.artifact_id))
    if old is None:
        return _check_first_version(state, intent)
    if intent.based_on != old.version:
        return _reject_wrong_version(intent, old)
    if old.version >= MAX_ARTIFACT_VERSIONS:
        why = (
            f"The artifact {old.artifact_id!r} was written {MAX_ARTIFACT_VERSIONS:,} times, which is all "
            "that is allowed."
        )
        return Rejection(code="too_many_versions", why=why, hint="Begin another one if there is still a need.")
    return None


def _check_first_version(state: TeamState, intent: WriteArtifact) -> RuleResult:
    artifacts = state.list_artifacts(intent.task_id)
    if intent.based_on:
        known = ", ".join(artifact.artifact_id for artifact in artifacts[:12]) or "none"
        why = f"There is no artifact {intent.artifact_id!r} in this task."
        return Rejection(code="unknown_artifact", why=why, hint=f"There are: {known}. create_artifact makes one.")
    if len(artifacts) >= MAX_ARTIFACTS_PER_TASK:
        why = f"This task has {MAX_ARTIFACTS_PER_TASK} artifacts, which is all that is allowed."
        return Rejection(code="too_many_artifacts", why=why, hint="Write into one of them.")
    return None


def _reject_wrong_version(intent: WriteArtifact, old: Artifact) -> Rejection:
    """Reject a version that is not based on the current one."""
    there = f"version {old.version} by {old.by}"
    if not intent.based_on:
        why = f"There is an artifact {old.artifact_id!r} already ({there})."
        return Rejection(code="artifact_exists", why=why, hint="Change it with update_artifact, or take another id.")
    why = f"The artifact {old.artifact_id!r} is at {there}; this was made from version {intent.based_on}."
    hint = "Nothing was written. Read it with read_artifact, then change what is there now."
    return Rejection(code="artifact_changed", why=why, hint=hint)


def _check_artifact_fields(intent: WriteArtifact) -> RuleResult:
    for name, text in (("id", intent.artifact_id), ("title", intent.title), ("media type", intent.media_type)):
        if not text.strip() or text != text.strip() or len(text) > MAX_ARTIFACT_NAME_CHARS or not text.isprintable():
            why = (
                f"The {name} of an artifact is one line of {MAX_ARTIFACT_NAME_CHARS} characters at most, "
                f"not {text[:MAX_ARTIFACT_NAME_CHARS]!r}."
            )
            return Rejection(code="bad_artifact", why=why, hint="Take something like 'task_plan' or 'main.py'.")
    if ".." in intent.artifact_id.split("/") or intent.artifact_id.startswith("/") or "\\" in intent.artifact_id:
        why = f"An artifact is not a file and has no path: {intent.artifact_id!r} cannot be its id."
        return Rejection(code="bad_artifact", why=why, hint="Take something like 'task_plan' or 'main.py'.")
    if intent.size > MAX_ARTIFACT_BYTES:
        why = (
            f"The artifact {intent.artifact_id!r} would have {intent.size:,} bytes; {MAX_ARTIFACT_BYTES:,} are allowed."
        )
        return Rejection(code="artifact_too_large", why=why, hint="Cut it, or make several of it.")
    return None


MAX_MEMORIES: Final = 1_000
"""Maximum memories of a team."""

MAX_MEMORY_CHARS: Final = 20_000
"""Maximum characters of a memory."""

MAX_TAGS: Final = 20
MAX_TAG_CHARS: Final = 60
"""Maximum tags of a memory, and maximum characters of a tag."""


def save_memory(draft: Draft, intent: SaveMemory, by: str) -> RuleResult:
    """Save a new memory or change one. The memories that it merges are removed."""
    refused = (
        _check_may_remember(draft.state, by)
        or check_memory(intent.content, intent.tags)
        or _check_memories_exist(draft.state, intent)
    )
    if refused is not None:
        return refused
    old = draft.state.memories[intent.memory_id] if intent.memory_id is not None else None
    replaced = tuple(name for name in dict.fromkeys(intent.merged_from) if name != intent.memory_id)
    if old is None and len(draft.state.memories) - len(replaced) >= MAX_MEMORIES:
        why = f"The short-term memory is full: it holds {MAX_MEMORIES:,} memories."
        return Rejection(code="memory_full", why=why, hint="Clear or merge some first.")
    if old is not None:
        memory = evolve(old, content=intent.content, tags=intent.tags, updated_at=draft.now)
    else:
        memory = Memory(
            memory_id=memory_id(draft.now, draft.state.team.last_memory),
            type=intent.type,
            content=intent.content,
            tags=intent.tags,
            created_at=draft.now,
            by=by,
        )
    origins = memory.origins
    for name in replaced:
        origins = merge_labels(origins, draft.state.memories[name].origins if name in draft.state.memories else ())
    memory = evolve(
        memory,
        merged_from=tuple(dict.fromkeys((*memory.merged_from, *replaced))),
        origins=merge_labels(origins, draft.read),
    )
    draft.emit(MemorySaved(at=draft.now, memory=memory))
    return None


def clear_memory(draft: Draft, intent: ClearMemory, by: str) -> RuleResult:
    """Remove memories. Ids that are already gone are ignored, but at least one must exist."""
    refused = _check_may_remember(draft.state, by)
    if refused is not None:
        return refused
    present = tuple(name for name in dict.fromkeys(intent.memory_ids) if name in draft.state.memories)
    if not present:
        return _reject_unknown_memory(intent.memory_ids)
    draft.emit(MemoriesCleared(at=draft.now, memory_ids=present))
    return None


def _check_may_remember(state: TeamState, by: str) -> RuleResult:
    if AgentId(by) in state.agents or is_trusted(state, by):
        return None
    return Rejection(code="not_in_team", why=f"{by!r} is not in this team, whose memory it is.")


def check_memory(content: str, tags: tuple[str, ...]) -> RuleResult:
    """Return why a memory of any scope cannot be saved, or None."""
    if not content.strip():
        return Rejection(code="empty_memory", why="A memory without content is none.", hint="Say what to remember.")
    if len(content) > MAX_MEMORY_CHARS:
        why = f"The memory has {len(content):,} characters; {MAX_MEMORY_CHARS:,} are allowed."
        return Rejection(code="memory_too_long", why=why, hint="Save what matters of it, or make an artifact of it.")
    if len(tags) > MAX_TAGS or not all(tag.strip() and len(tag) <= MAX_TAG_CHARS for tag in tags):
        why = f"A memory has {MAX_TAGS} tags at most, none of them blank or longer than {MAX_TAG_CHARS} characters."
        return Rejection(code="bad_tags", why=why, hint="Use a few short words that others would look for.")
    return None


def _check_memories_exist(state: TeamState, intent: SaveMemory) -> RuleResult:
    merged = intent.merged_from if intent.type == "short_term" else ()  # others may be in files
    named = (*((intent.memory_id,) if intent.memory_id is not None else ()), *merged)
    gone = tuple(name for name in named if name not in state.memories)
    return _reject_unknown_memory(gone) if gone else None


def _reject_unknown_memory(names: tuple[MemoryId, ...]) -> Rejection:
    why = f"There is no memory {', '.join(map(repr, names[:5])) or 'to clear'} in the short-term memory."
    return Rejection(code="unknown_memory", why=why, hint="retrieve_memory shows the ids of those that there are.")
