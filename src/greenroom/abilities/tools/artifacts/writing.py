"""`create_artifact`, `update_artifact` and `rewrite_artifact`: each writes a version, and the older ones stay."""

from __future__ import annotations

import asyncio
from typing import Final

from greenroom.abilities.tools.artifacts.tool import (
    NAMES,
    ArtifactTool,
    Version,
    given,
    meant,
    names_newest,
    written,
)
from greenroom.abilities.tools.files.edits import read_edits
from greenroom.abilities.tools.files.patching import EDITS, patched
from greenroom.abilities.tools.files.rewriting import rewritten
from greenroom.abilities.tools.files.seen import seen_in
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import ToolCard
from greenroom.core.state.artifact import Artifact

USUAL: Final = "text/markdown"
ID: Final[Data] = {"type": "string", "description": "Its id in this task, such as task_plan, research_report, main.py."}
TITLE: Final[Data] = {"type": "string", "description": "What it is, in a few words."}
CONTENT: Final[Data] = {"type": "string", "description": "All of it, from the first line to the last."}
BASED_ON: Final[Data] = {
    "type": "integer",
    "minimum": 1,
    "description": "The version that you have read: if there is a newer one, nothing is written.",
}


def _card(name: str, description: str, properties: Data, required: tuple[str, ...]) -> ToolCard:
    parameters: Data = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    spec = ToolSpec(name=name, description=description, parameters=parameters)
    return ToolCard(spec=spec, group="memory", effect="pure", seconds=60)


class CreateArtifact(ArtifactTool):
    """Its first version."""

    card = _card(
        "create_artifact",
        "Begin a result of the task that all who work on it can read and change: a plan (id task_plan, to keep track "
        "of the work), a report, a draft, code that is handed over. Not for one that is there already, which is "
        "changed with update_artifact, nor for files of the workspace. "
        'Example: {"id": "task_plan", "title": "Plan", "content": "- [ ] look\\n- [ ] report\\n"}',
        {
            "id": ID,
            "title": TITLE,
            "content": CONTENT,
            "media_type": {"type": "string", "description": f"{USUAL} if left out; text/x-python, text/csv …"},
        },
        ("id", "content"),
    )

    async def run(self, bench: Bench) -> Outcome:
        """Write it."""
        arguments = given(bench, "id", "title", "content", "media_type")
        name = arguments.text("id").strip()
        made = rewritten(name, arguments.text("content", blank=True), None)
        title, media_type = arguments.text("title", name).strip(), arguments.text("media_type", USUAL).strip()
        return await written(bench, Version(name=name, title=title, media_type=media_type, made=made, blind=True))


class UpdateArtifact(ArtifactTool):
    """Changes are looked for in the newest version: what others have written there is not lost."""

    card = _card(
        "update_artifact",
        "Change some places of an artifact, by text that occurs in it exactly once. Prefer it to rewrite_artifact, and "
        "change as little as possible: tick off what is done, add a finding. All changes are looked for in the newest "
        "version, and either all are made or none. Not for files: that is patch. "
        'Example: {"id": "task_plan", "edits": [{"search": "- [ ] look", "replace": "- [x] look"}]}',
        {"id": ID, "edits": EDITS, "version": BASED_ON},
        ("id", "edits"),
    )

    async def run(self, bench: Bench) -> Outcome:
        """Make the changes, and say what came of them."""
        arguments = given(bench, "id", "edits", "version")
        old = meant(bench, arguments)
        names_newest(arguments, old)
        edits = read_edits(arguments)
        made = await asyncio.to_thread(patched, old.artifact_id, edits, await bench.blob(old.blob))
        return await written(
            bench, Version(name=old.artifact_id, title=old.title, media_type=old.media_type, made=made, old=old)
        )


class RewriteArtifact(ArtifactTool):
    """What it would write over must have been seen, and all of it."""

    card = _card(
        "rewrite_artifact",
        "Write all of an artifact anew, when most of it changes. You must have read its newest version before, all of "
        "it, or have written it; or name that version. Not for small changes: use update_artifact, which cannot lose "
        "what others wrote. "
        'Example: {"id": "research_report", "content": "# Report\\nAll in one.\\n"}',
        {"id": ID, "content": CONTENT, "title": TITLE, "version": BASED_ON},
        ("id", "content"),
    )

    async def run(self, bench: Bench) -> Outcome:
        """Write it, and say what has changed."""
        arguments = given(bench, "id", "content", "title", "version")
        old = meant(bench, arguments)
        if not names_newest(arguments, old):
            await _known(bench, old)
        content, title = arguments.text("content", blank=True), arguments.text("title", old.title).strip()
        raw = await bench.blob(old.blob)
        made = await asyncio.to_thread(rewritten, old.artifact_id, content, raw)
        if made.content == raw and title == old.title:
            return Outcome(result={"output": made.told, "version": old.version})
        version = Version(name=old.artifact_id, title=title, media_type=old.media_type, made=made, old=old, blind=True)
        return await written(bench, version)


async def _known(bench: Bench, old: Artifact) -> None:
    """Refuse to write over what the agent has not seen."""
    seen = seen_in(await bench.history(), NAMES).get(old.artifact_id)
    if seen is not None and seen.whole and seen.digest == old.blob:
        return
    there = f"version {old.version} by {old.by}"
    why = "you have not read it" if seen is None else "you have read only a part of it"
    if seen is not None and seen.digest != old.blob:
        why = "you have not read that one"
    raise ModelFault(
        f"{old.artifact_id!r} is at {there}, and {why}. Read it with read_artifact first, or change only what you know "
        "with update_artifact. Nothing was written."
    )
