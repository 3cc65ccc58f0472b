"""create_artifact, update_artifact, rewrite_artifact and read_artifact: results that all agents of a task share.

These tools are pure: they change only the log.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from greenroom.abilities.tools.files.edits import Edit
from greenroom.abilities.tools.files.tools import FirstLine, LastLine, patch_bytes, render_numbered_lines, rewrite_bytes
from greenroom.abilities.tools.files.write import NewContent, collect_seen
from greenroom.abilities.tools.tool import Arguments, CardedTool, build_schema, make_card, read_arguments
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import ArtifactId
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.rules.intents import WriteArtifact
from greenroom.core.rules.knowledge import check_artifact
from greenroom.core.state.knowledge import Artifact, describe_artifact
from greenroom.core.state.origin import Labels, make_label, merge_labels
from greenroom.core.state.team_state import artifact_key

ARTIFACT_TOOLS = frozenset({"create_artifact", "update_artifact", "rewrite_artifact", "read_artifact"})


DEFAULT_MEDIA_TYPE: Final = "text/markdown"

Id: TypeAlias = Annotated[str, Meta(description="Its id in this task, such as task_plan, research_report, main.py.")]
Title: TypeAlias = Annotated[str, Meta(description="What it is, in a few words.")]
Content: TypeAlias = Annotated[str, Meta(description="All of it, from the first line to the last.")]
BasedOn: TypeAlias = Annotated[
    int, Meta(ge=1, description="The version that you have read: if there is a newer one, nothing is written.")
]


def find_artifact(context: StepContext, name: str, expected_version: int | None = None) -> Artifact:
    """Return the named artifact. Raise `ModelFault` if `expected_version` is not the newest version."""
    name = ArtifactId(name.strip())
    found = context.state.artifacts.get(artifact_key(context.step.task_id, name))
    if found is None:
        raise ModelFault(f"There is no artifact {name!r} in this task. {render_inventory(context)}")
    if expected_version is not None and expected_version != found.version:
        there = f"is at version {found.version} by {found.by}, not {expected_version}"
        raise ModelFault(f"{found.artifact_id!r} {there}. Read it again first. Nothing was written.")
    return found


def render_inventory(context: StepContext) -> str:
    """List all artifacts of the task, one per line."""
    here = context.state.list_artifacts(context.step.task_id)
    if here:
        return "\n".join(("There are:", *map(describe_artifact, here)))
    return "There are none yet: create_artifact makes one."


def collect_origins(*artifacts: Artifact) -> Labels:
    """Collect the origins of these artifacts: what their authors had read. Content of the person has no label."""
    labels: Labels = ()
    for artifact in artifacts:
        way = (make_label("artifact", artifact.artifact_id),) if artifact.origins else ()
        labels = merge_labels(labels, (*way, *artifact.origins))
    return labels


async def write_version(
    context: StepContext,
    name: str,
    made: NewContent,
    *,
    title: str,
    media_type: str,
    old: Artifact | None = None,
    blind: bool = False,
) -> Outcome:
    """Write a new version based on `old`, unless a rule rejects it.

    The rules decide again at commit, because other agents write concurrently. `blind` means that the new content does
    not depend on the old content.
    """
    content, based_on = made.content, old.version if old is not None else 0
    intent = WriteArtifact(
        task_id=context.step.task_id,
        artifact_id=ArtifactId(name),
        title=title,
        media_type=media_type,
        blob="",
        size=len(content),
        lines=content.count(b"\n") + bool(content and not content.endswith(b"\n")),
        based_on=based_on,
    )
    refused = check_artifact(context.state, intent, context.agent.agent_id)
    if refused is not None:
        raise ModelFault(str(refused))
    blob = await context.keep(content)
    entry = {"path": name, "before": old.blob if old else "", "digest": blob, "whole": blind}
    output = f"Version {based_on + 1} of {made.told}"
    return Outcome(
        result={"output": output, "version": based_on + 1, "files": [entry]},
        intents=(evolve(intent, blob=blob),),
        blobs=(blob,),
        origins=collect_origins(old) if old is not None else (),
    )


class CreateArguments(Arguments, frozen=True, kw_only=True):
    id: Id
    title: Title = ""
    content: Content
    media_type: Annotated[str, Meta(description=f"{DEFAULT_MEDIA_TYPE} if left out; text/x-python, text/csv …")] = (
        DEFAULT_MEDIA_TYPE
    )


class CreateArtifactTool(CardedTool):
    """Creates the first version of an artifact."""

    card = make_card(
        "create_artifact",
        "Create an artifact: a result that all agents of the task can read and change: a plan (id task_plan, to keep "
        "track of the work), a report, a draft, code that is handed over. Not for one that is there already, which is "
        "changed with update_artifact, nor for files of the workspace. "
        'Example: {"id": "task_plan", "title": "Plan", "content": "- [ ] look\\n- [ ] report\\n"}',
        build_schema(CreateArguments),
        group="memory",
        seconds=60,
    )

    async def run(self, context: StepContext) -> Outcome:
        """Write the first version."""
        asked = read_arguments(CreateArguments, context.step)
        name = asked.id.strip()
        made = rewrite_bytes(name, asked.content, None)
        title = (asked.title or name).strip()
        return await write_version(context, name, made, title=title, media_type=asked.media_type.strip(), blind=True)


class UpdateArguments(Arguments, frozen=True):
    id: Id
    edits: Annotated[tuple[Edit, ...], Meta(min_length=1)]
    version: BasedOn | None = None


class UpdateArtifactTool(CardedTool):
    """Applies changes to the newest version, so that the work of other agents is kept."""

    card = make_card(
        "update_artifact",
        "Change some places of an artifact, by text that occurs in it exactly once. Prefer it to rewrite_artifact, and "
        "change as little as possible: tick off what is done, add a finding. All changes are looked for in the newest "
        "version, and either all are made or none. Not for files: that is patch. "
        'Example: {"id": "task_plan", "edits": [{"search": "- [ ] look", "replace": "- [x] look"}]}',
        build_schema(UpdateArguments),
        group="memory",
        seconds=60,
    )

    async def run(self, context: StepContext) -> Outcome:
        """Apply the changes and report the diff."""
        asked = read_arguments(UpdateArguments, context.step)
        old = find_artifact(context, asked.id, asked.version)
        made = await asyncio.to_thread(patch_bytes, old.artifact_id, asked.edits, await context.blob(old.blob))
        return await write_version(context, old.artifact_id, made, title=old.title, media_type=old.media_type, old=old)


class RewriteArtifactArguments(Arguments, frozen=True):
    id: Id
    content: Content
    title: Title = ""
    version: BasedOn | None = None


class RewriteArtifactTool(CardedTool):
    """Replaces the content of an artifact. The agent must have read the whole current version."""

    card = make_card(
        "rewrite_artifact",
        "Write all of an artifact anew, when most of it changes. You must have read its newest version before, all of "
        "it, or have written it; or name that version. Not for small changes: use update_artifact, which cannot lose "
        "what others wrote. "
        'Example: {"id": "research_report", "content": "# Report\\nAll in one.\\n"}',
        build_schema(RewriteArtifactArguments),
        group="memory",
        seconds=60,
    )

    async def run(self, context: StepContext) -> Outcome:
        """Write the new version and report the diff."""
        asked = read_arguments(RewriteArtifactArguments, context.step)
        old = find_artifact(context, asked.id, asked.version)
        if asked.version is None:
            await _check_seen(context, old)
        title = (asked.title or old.title).strip()
        raw = await context.blob(old.blob)
        made = await asyncio.to_thread(rewrite_bytes, old.artifact_id, asked.content, raw)
        if made.content == raw and title == old.title:
            return Outcome(result={"output": made.told, "version": old.version})
        kept = {"title": title, "media_type": old.media_type}
        return await write_version(context, old.artifact_id, made, **kept, old=old, blind=True)


async def _check_seen(context: StepContext, old: Artifact) -> None:
    """Raise `ModelFault` if the agent has not read the whole current version."""
    seen = collect_seen(await context.history(), ARTIFACT_TOOLS).get(old.artifact_id)
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


class ReadArguments(Arguments, frozen=True):
    id: Annotated[str, Meta(description="Which one; all are listed if left out.")] = ""
    version: Annotated[int, Meta(ge=1, description="The newest if left out.")] | None = None
    start_line: FirstLine = 1
    end_line: LastLine | None = None


class ReadArtifactTool(CardedTool):
    """Reads a version of an artifact. Versions never change."""

    card = make_card(
        "read_artifact",
        "Read an artifact of the task, with line numbers: the newest version, or an older one. Without an id it lists "
        "all artifacts. Use it to see what others have done and before you rewrite one. Not for files: that is "
        'read_code. Example: {"id": "task_plan"} or {"id": "main.py", "start_line": 40, "end_line": 90}',
        build_schema(ReadArguments),
        group="memory",
        pure=True,
        seconds=60,
    )

    async def run(self, context: StepContext) -> Outcome:
        """Return the lines and where they stop, or the list of artifacts."""
        asked = read_arguments(ReadArguments, context.step)
        if not asked.id.strip():
            here = context.state.list_artifacts(context.step.task_id)
            return Outcome(result={"output": render_inventory(context)}, origins=collect_origins(*here))
        artifact = find_artifact(context, asked.id)
        version = asked.version or artifact.version
        blob = artifact.blob_of(version)
        if blob is None:
            why = f"There is no version {version} of {artifact.artifact_id!r}: the newest is {artifact.version}."
            raise ModelFault(why)
        name = f"{artifact.artifact_id} (version {version} of {artifact.version})"
        raw = await context.blob(blob)
        result = await asyncio.to_thread(
            render_numbered_lines, raw, name, artifact.artifact_id, asked.start_line, asked.end_line
        )
        return Outcome(result={**result, "version": version}, origins=collect_origins(artifact))


def build_artifact_tools() -> tuple[ToolExecutor, ...]:
    """Build create_artifact, update_artifact, rewrite_artifact and read_artifact."""
    return (CreateArtifactTool(), UpdateArtifactTool(), RewriteArtifactTool(), ReadArtifactTool())
