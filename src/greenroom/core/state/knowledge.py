"""What a team knows: notes (MAS's shared message pool), values of the task board, artifacts, memories.

Agents read it on request. Only a briefing has the newest notes, for an agent that converses and so has no queries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from greenroom.core.base.ids import AgentId, ArtifactId, MemoryId, NoteId, StageId, TaskId, note_id
from greenroom.core.base.records import encode, evolve, record
from greenroom.core.base.text import add_fence
from greenroom.core.state.origin import Labels


@record
class Note:
    """A note on the task board. The archive holds all notes; the state counts them and holds the newest."""

    note_id: NoteId
    task_id: TaskId
    agent_id: AgentId
    role: str
    stage_id: StageId | None
    content: str
    posted_at: int


MAX_NOTES_SHOWN: Final = 20
"""Maximum number of a task's notes that agents can read."""

MAX_NOTE_CHARS: Final = 300
"""Maximum characters shown of each note."""


def truncate_note(note: Note) -> Note:
    """Return the note as agents read it. Only the archive holds the rest of a longer note."""
    return evolve(note, content=f"{note.content[:MAX_NOTE_CHARS]}…") if len(note.content) > MAX_NOTE_CHARS else note


def list_newest_notes(task: TaskId, made: int) -> tuple[NoteId, ...]:
    """Return the ids of a task's readable notes, oldest first. `made` is the number of notes posted so far."""
    return tuple(note_id(task, number) for number in range(max(1, made - MAX_NOTES_SHOWN + 1), made + 1))


def render_notes(notes: Iterable[Note]) -> str:
    """Render notes in a fence, each as one line of JSON with MAS's fields."""
    names = ("agent_id", "role", "stage_id", "content")
    return add_fence("\n".join(encode({name: getattr(note, name) for name in names}).decode() for note in notes))


@record
class BoardValue:
    """A value on the task board: the newest content under a key. `version` counts how often it was set."""

    task_id: TaskId
    key: str
    content: str
    set_by: str
    version: int = 1


@record
class NotePosted:
    """A note was posted on the task board."""

    at: int
    note: Note


@record
class ValueSet:
    """A key of the task board got new content."""

    at: int
    value: BoardValue


NoteEvent = NotePosted | ValueSet


@record
class Citation:
    """A source of a claim: a fetched page, the hash of its text, and the quoted span. The artifact marks the claim with
    `[number]`.

    `problem` says why the quote does not count: the run has not read the page, or the quote is not on it.
    """

    number: int
    url: str
    quote: str
    title: str = ""
    retrieved: str = ""
    digest: str = ""
    problem: Literal["", "no_page", "not_found"] = ""


@record
class Artifact:
    """One version of an artifact. `blob` is the digest of its content, `by` the writer, `at` the time.

    The team state holds the newest version; `earlier` lists the older blobs, oldest first. The archive holds one record
    per version, without `earlier`. `origins` labels what its writers had read, up to this version. `step` wrote it,
    for this `reason`.
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
    step: str = ""
    reason: str = ""
    citations: tuple[Citation, ...] = ()

    def blob_of(self, version: int) -> str | None:
        """Return the blob of a version, or None if the version does not exist."""
        blobs = (*self.earlier, self.blob)
        return blobs[version - 1] if 1 <= version <= len(blobs) else None


@record
class ArtifactWritten:
    """An artifact was created or got a new version."""

    at: int
    artifact: Artifact


ArtifactEvent = ArtifactWritten


def add_version(old: Artifact | None, new: Artifact) -> Artifact:
    """Return the new version with the blobs of the older ones."""
    return new if old is None else evolve(new, earlier=(*old.earlier, old.blob))


def describe_artifact(artifact: Artifact) -> str:
    """Describe an artifact in one line, for a listing."""
    lines = "1 line" if artifact.lines == 1 else f"{artifact.lines:,} lines"
    what = f"{artifact.artifact_id} · {artifact.title} · {artifact.media_type}"
    return f"{what} · version {artifact.version} by {artifact.by} · {lines}, {artifact.size:,} bytes"


MemoryType = Literal["short_term", "agent", "project_long_term", "global_long_term"]
"""The scope of a memory, which decides where it is stored."""


@record
class Memory:
    """A memory of any scope. `merged_from` lists the memories that it replaced; `by` is the writer.

    `origins` labels what its writers had read.
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
    """The team saved or changed a memory. The memories in `merged_from` were removed."""

    at: int
    memory: Memory


@record
class MemoriesCleared:
    """The team removed memories."""

    at: int
    memory_ids: tuple[MemoryId, ...]


MemoryEvent = MemorySaved | MemoriesCleared
