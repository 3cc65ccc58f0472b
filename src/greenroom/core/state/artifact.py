"""Artifacts: the versioned results of a task, on its board. Their contents are blobs; here is what is known of them."""

from __future__ import annotations

from greenroom.core.base.ids import ArtifactId, TaskId
from greenroom.core.base.records import evolve, record
from greenroom.core.state.origin import Labels


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
