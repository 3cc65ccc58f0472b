"""create_artifact, update_artifact, rewrite_artifact and read_artifact: results of a task that all its agents share.

They are pure: what they change is in the log only.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from greenroom.abilities.tools.files.edits import Edit
from greenroom.abilities.tools.files.tools import FirstLine, LastLine, numbered, patched, rewritten
from greenroom.abilities.tools.files.write import Made, seen_in
from greenroom.abilities.tools.tool import Arguments, CardedTool, given, make_card, schema_of
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import ArtifactId
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.rules.intents import WriteArtifact
from greenroom.core.rules.knowledge import refusal
from greenroom.core.state.knowledge import Artifact, told
from greenroom.core.state.origin import Labels, label, merged
from greenroom.core.state.world import artifact_key

NAMES = frozenset({"create_artifact", "update_artifact", "rewrite_artifact", "read_artifact"})


USUAL: Final = "text/markdown"

Id: TypeAlias = Annotated[str, Meta(description="Its id in this task, such as task_plan, research_report, main.py.")]
Title: TypeAlias = Annotated[str, Meta(description="What it is, in a few words.")]
Content: TypeAlias = Annotated[str, Meta(description="All of it, from the first line to the last.")]
BasedOn: TypeAlias = Annotated[
    int, Meta(ge=1, description="The version that you have read: if there is a newer one, nothing is written.")
]


def meant(bench: Bench, name: str, said: int | None = None) -> Artifact:
    """The artifact that a call names, as it is now; `ModelFault` when it `said` another version than the newest."""
    name = ArtifactId(name.strip())
    found = bench.world.artifacts.get(artifact_key(bench.step.task_id, name))
    if found is None:
        raise ModelFault(f"There is no artifact {name!r} in this task. {inventory(bench)}")
    if said is not None and said != found.version:
        there = f"is at version {found.version} by {found.by}, not {said}"
        raise ModelFault(f"{found.artifact_id!r} {there}. Read it again first. Nothing was written.")
    return found


def inventory(bench: Bench) -> str:
    """All artifacts of the task, a line each."""
    here = bench.world.inventory(bench.step.task_id)
    return "\n".join(("There are:", *map(told, here))) if here else "There are none yet: create_artifact makes one."


def origins(*artifacts: Artifact) -> Labels:
    """Where these come from: what those had read who wrote them. What is all the person's own has no label."""
    labels: Labels = ()
    for one in artifacts:
        way = (label("artifact", one.artifact_id),) if one.origins else ()
        labels = merged(labels, (*way, *one.origins))
    return labels


async def written(
    bench: Bench,
    name: str,
    made: Made,
    *,
    title: str,
    media_type: str,
    old: Artifact | None = None,
    blind: bool = False,
) -> Outcome:
    """A new version, made from `old`, unless a rule is against it. The rules are asked again when it counts: others
    write meanwhile. `blind` says that it does not depend on the content of the old one."""
    content, based_on = made.content, old.version if old is not None else 0
    intent = WriteArtifact(
        task_id=bench.step.task_id,
        artifact_id=ArtifactId(name),
        title=title,
        media_type=media_type,
        blob="",
        size=len(content),
        lines=content.count(b"\n") + bool(content and not content.endswith(b"\n")),
        based_on=based_on,
    )
    refused = refusal(bench.world, intent, bench.agent.agent_id)
    if refused is not None:
        raise ModelFault(str(refused))
    blob = await bench.keep(content)
    entry = {"path": name, "before": old.blob if old else "", "digest": blob, "whole": blind}
    output = f"Version {based_on + 1} of {made.told}"
    return Outcome(
        result={"output": output, "version": based_on + 1, "files": [entry]},
        intents=(evolve(intent, blob=blob),),
        blobs=(blob,),
        origins=origins(old) if old is not None else (),
    )


class CreateArguments(Arguments, frozen=True, kw_only=True):
    """A new artifact."""

    id: Id
    title: Title = ""
    content: Content
    media_type: Annotated[str, Meta(description=f"{USUAL} if left out; text/x-python, text/csv …")] = USUAL


class CreateArtifact(CardedTool):
    """Its first version."""

    card = make_card(
        "create_artifact",
        "Begin a result of the task that all who work on it can read and change: a plan (id task_plan, to keep track "
        "of the work), a report, a draft, code that is handed over. Not for one that is there already, which is "
        "changed with update_artifact, nor for files of the workspace. "
        'Example: {"id": "task_plan", "title": "Plan", "content": "- [ ] look\\n- [ ] report\\n"}',
        schema_of(CreateArguments),
        group="memory",
        seconds=60,
    )

    async def run(self, bench: Bench) -> Outcome:
        """Write it."""
        asked = given(CreateArguments, bench.step)
        name = asked.id.strip()
        made = rewritten(name, asked.content, None)
        title = (asked.title or name).strip()
        return await written(bench, name, made, title=title, media_type=asked.media_type.strip(), blind=True)


class UpdateArguments(Arguments, frozen=True):
    """Changes of an artifact."""

    id: Id
    edits: Annotated[tuple[Edit, ...], Meta(min_length=1)]
    version: BasedOn | None = None


class UpdateArtifact(CardedTool):
    """Changes are looked for in the newest version: what others have written there is not lost."""

    card = make_card(
        "update_artifact",
        "Change some places of an artifact, by text that occurs in it exactly once. Prefer it to rewrite_artifact, and "
        "change as little as possible: tick off what is done, add a finding. All changes are looked for in the newest "
        "version, and either all are made or none. Not for files: that is patch. "
        'Example: {"id": "task_plan", "edits": [{"search": "- [ ] look", "replace": "- [x] look"}]}',
        schema_of(UpdateArguments),
        group="memory",
        seconds=60,
    )

    async def run(self, bench: Bench) -> Outcome:
        """Make the changes, and say what came of them."""
        asked = given(UpdateArguments, bench.step)
        old = meant(bench, asked.id, asked.version)
        made = await asyncio.to_thread(patched, old.artifact_id, asked.edits, await bench.blob(old.blob))
        return await written(bench, old.artifact_id, made, title=old.title, media_type=old.media_type, old=old)


class RewriteArguments(Arguments, frozen=True):
    """All of an artifact."""

    id: Id
    content: Content
    title: Title = ""
    version: BasedOn | None = None


class RewriteArtifact(CardedTool):
    """What it would write over must have been seen, and all of it."""

    card = make_card(
        "rewrite_artifact",
        "Write all of an artifact anew, when most of it changes. You must have read its newest version before, all of "
        "it, or have written it; or name that version. Not for small changes: use update_artifact, which cannot lose "
        "what others wrote. "
        'Example: {"id": "research_report", "content": "# Report\\nAll in one.\\n"}',
        schema_of(RewriteArguments),
        group="memory",
        seconds=60,
    )

    async def run(self, bench: Bench) -> Outcome:
        """Write it, and say what has changed."""
        asked = given(RewriteArguments, bench.step)
        old = meant(bench, asked.id, asked.version)
        if asked.version is None:
            await _known(bench, old)
        title = (asked.title or old.title).strip()
        raw = await bench.blob(old.blob)
        made = await asyncio.to_thread(rewritten, old.artifact_id, asked.content, raw)
        if made.content == raw and title == old.title:
            return Outcome(result={"output": made.told, "version": old.version})
        kept = {"title": title, "media_type": old.media_type}
        return await written(bench, old.artifact_id, made, **kept, old=old, blind=True)


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


class ReadArguments(Arguments, frozen=True):
    """Which artifact, and which lines of it."""

    id: Annotated[str, Meta(description="Which one; all are listed if left out.")] = ""
    version: Annotated[int, Meta(ge=1, description="The newest if left out.")] | None = None
    start_line: FirstLine = 1
    end_line: LastLine | None = None


class ReadArtifact(CardedTool):
    """A version never changes."""

    card = make_card(
        "read_artifact",
        "Read an artifact of the task, with line numbers: the newest version, or an older one. Without an id it lists "
        "all artifacts. Use it to see what others have done and before you rewrite one. Not for files: that is "
        'read_code. Example: {"id": "task_plan"} or {"id": "main.py", "start_line": 40, "end_line": 90}',
        schema_of(ReadArguments),
        group="memory",
        pure=True,
        seconds=60,
    )

    async def run(self, bench: Bench) -> Outcome:
        """The lines and where it stopped, or the list."""
        asked = given(ReadArguments, bench.step)
        if not asked.id.strip():
            here = bench.world.inventory(bench.step.task_id)
            return Outcome(result={"output": inventory(bench)}, origins=origins(*here))
        artifact = meant(bench, asked.id)
        version = asked.version or artifact.version
        blob = artifact.blob_of(version)
        if blob is None:
            why = f"There is no version {version} of {artifact.artifact_id!r}: the newest is {artifact.version}."
            raise ModelFault(why)
        name = f"{artifact.artifact_id} (version {version} of {artifact.version})"
        raw = await bench.blob(blob)
        result = await asyncio.to_thread(numbered, raw, name, artifact.artifact_id, asked.start_line, asked.end_line)
        return Outcome(result={**result, "version": version}, origins=origins(artifact))


def artifact_tools() -> tuple[ToolExecutor, ...]:
    """create_artifact, update_artifact, rewrite_artifact and read_artifact."""
    return (CreateArtifact(), UpdateArtifact(), RewriteArtifact(), ReadArtifact())
