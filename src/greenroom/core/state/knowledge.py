"""What a team knows: notes (MAS's shared message pool) and values of a task's board, artifacts, memories.

All of it is read when wanted, never pushed.
"""

from __future__ import annotations

from typing import Final, Literal

from greenroom.core.base.ids import AgentId, ArtifactId, MemoryId, NoteId, StageId, TaskId, note_id
from greenroom.core.base.records import evolve, record
from greenroom.core.state.origin import Labels


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


# ---------------------------------------------------------------------------------------------- artifacts


@record
class Artifact:
    """An artifact as of one version. `blob` is the digest of that version's content, `by` who wrote it, and when `at`.

    In the world it is the newest version, and `earlier` are the blobs of those before it, oldest first. In the archive
    there is one for each version, without them. `origins` is what those had read who wrote it, up to this version.
    """

    task_id: TaskId
    artifact_id: ArtifactId
    title: str
    media_type: str
    blob: str
    size: int
    lines: int
    by: str
    at: int
    version: int = 1
    earlier: tuple[str, ...] = ()
    origins: Labels = ()

    def blob_of(self, version: int) -> str | None:
        """The blob of a version; None when there is no such version."""
        every = (*self.earlier, self.blob)
        return every[version - 1] if 1 <= version <= len(every) else None


@record
class ArtifactWritten:
    """The artifact has this version: its first one, or one more."""

    at: int
    artifact: Artifact


ArtifactEvent = ArtifactWritten


def after(old: Artifact | None, new: Artifact) -> Artifact:
    """The new version, knowing those before it."""
    return new if old is None else evolve(new, earlier=(*old.earlier, old.blob))


def told(artifact: Artifact) -> str:
    """An artifact in one line: what an inventory says of it."""
    lines = "1 line" if artifact.lines == 1 else f"{artifact.lines:,} lines"
    what = f"{artifact.artifact_id} · {artifact.title} · {artifact.media_type}"
    return f"{what} · version {artifact.version} by {artifact.by} · {lines}, {artifact.size:,} bytes"


# ---------------------------------------------------------------------------------------------- memories

MemoryType = Literal["short_term", "agent", "project_long_term", "global_long_term"]
"""How far a memory reaches, and so where it is kept."""


@record
class Memory:
    """One memory, in whichever store. `merged_from` are memories that it took the place of; `by` is who saved it.

    `origins` is what those had read who wrote it.
    """

    memory_id: MemoryId
    type: MemoryType
    content: str
    created_at: int
    tags: tuple[str, ...] = ()
    updated_at: int | None = None
    merged_from: tuple[MemoryId, ...] = ()
    by: str = ""
    origins: Labels = ()


@record
class MemorySaved:
    """The team remembers this: a new memory, or another content of one that it had. What it is merged from is gone."""

    at: int
    memory: Memory


@record
class MemoriesCleared:
    """The team remembers these no longer."""

    at: int
    memory_ids: tuple[MemoryId, ...]


MemoryEvent = MemorySaved | MemoriesCleared
