"""The tools for artifacts, all that belong together."""

from __future__ import annotations

from greenroom.abilities.tools.artifacts.reading import ReadArtifact
from greenroom.abilities.tools.artifacts.writing import CreateArtifact, RewriteArtifact, UpdateArtifact
from greenroom.core.ports.tool import ToolExecutor


def artifact_tools() -> tuple[ToolExecutor, ...]:
    """create_artifact, update_artifact, rewrite_artifact and read_artifact."""
    return (CreateArtifact(), UpdateArtifact(), RewriteArtifact(), ReadArtifact())
