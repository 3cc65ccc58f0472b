"""Intents about what a team knows: its short-term memory, and the artifacts of its tasks."""

from __future__ import annotations

from greenroom.core.base.ids import ArtifactId, MemoryId, TaskId
from greenroom.core.base.records import record


@record
class SaveMemory:
    """Remember this in the team's short-term memory: as something new, or in the place of `memory_id`.

    The memories that it is `merged_from` are then no longer there by themselves.
    """

    content: str
    tags: tuple[str, ...] = ()
    memory_id: MemoryId | None = None
    merged_from: tuple[MemoryId, ...] = ()


@record
class Remember:
    """MAS's persistent memory: keep this for good, below what was kept before. It is the asking agent's own.

    Headings are of the third level or lower, so that it can stand in a prompt.
    """

    content: str


@record
class ClearMemory:
    """Remember these no longer."""

    memory_ids: tuple[MemoryId, ...]


@record
class WriteArtifact:
    """Write a version of an artifact. `based_on` is the version that it was made from: 0 for a new artifact.

    `blob` is its content, which the step that asks has kept.
    """

    task_id: TaskId
    artifact_id: ArtifactId
    title: str
    media_type: str
    blob: str
    size: int
    lines: int
    based_on: int = 0
