"""`read_artifact`: an artifact or some lines of it, an older version; without an id, which artifacts there are."""

from __future__ import annotations

import asyncio

from greenroom.abilities.tools.artifacts.tool import ArtifactTool, given, inventory, meant, origins
from greenroom.abilities.tools.files.reading import numbered
from greenroom.core.base.errors import ModelFault
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import ToolCard


class ReadArtifact(ArtifactTool):
    """Pure: a version never changes."""

    card = ToolCard(
        spec=ToolSpec(
            name="read_artifact",
            description=(
                "Read an artifact of the task, with line numbers: the newest version, or an older one. Without an id "
                "it lists all artifacts. Use it to see what others have done and before you rewrite one. Not for "
                'files: that is read_code. Example: {"id": "task_plan"} or {"id": "main.py", "start_line": 40, '
                '"end_line": 90}'
            ),
            parameters={
                "type": "object",
                "properties": {
                    "id": {"type": "string", "description": "Which one; all are listed if left out."},
                    "version": {"type": "integer", "minimum": 1, "description": "The newest if left out."},
                    "start_line": {"type": "integer", "minimum": 1, "description": "First line; 1 if left out."},
                    "end_line": {"type": "integer", "minimum": 1, "description": "Last line; the end if left out."},
                },
                "additionalProperties": False,
            },
            pure=True,
        ),
        group="memory",
        effect="pure",
        seconds=60,
    )

    async def run(self, bench: Bench) -> Outcome:
        """The lines and where it stopped, or the list."""
        arguments = given(bench, "id", "version", "start_line", "end_line")
        if not arguments.text("id", "").strip():
            here = bench.world.inventory(bench.step.task_id)
            return Outcome(result={"output": inventory(bench)}, origins=origins(*here))
        artifact = meant(bench, arguments)
        version = arguments.number("version", artifact.version, 1, 10**9)
        blob = artifact.blob_of(version)
        if blob is None:
            why = f"There is no version {version} of {artifact.artifact_id!r}: the newest is {artifact.version}."
            raise ModelFault(why)
        name = f"{artifact.artifact_id} (version {version} of {artifact.version})"
        raw = await bench.blob(blob)
        result = await asyncio.to_thread(numbered, raw, name, artifact.artifact_id, arguments)
        return Outcome(result={**result, "version": version}, origins=origins(artifact))
