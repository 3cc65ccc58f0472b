"""What the tools for artifacts share: which artifact is meant, its content, and how a version is written."""

from __future__ import annotations

from greenroom.abilities.tools.carded import CardedTool
from greenroom.abilities.tools.files.arguments import Arguments
from greenroom.abilities.tools.files.writing import Made
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import ArtifactId
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.rules.artifacts import refusal
from greenroom.core.rules.intents import WriteArtifact
from greenroom.core.state.artifact import Artifact, told
from greenroom.core.state.origin import Labels, label, merged
from greenroom.core.state.world import artifact_key

NAMES = frozenset({"create_artifact", "update_artifact", "rewrite_artifact", "read_artifact"})


class ArtifactTool(CardedTool):
    """A tool for the artifacts of the task that its agent works on. Pure: what it changes is in the log only."""


def given(bench: Bench, *known: str) -> Arguments:
    """The arguments of the step, which are these and no others."""
    arguments = Arguments(bench.step.work.instruction_content or {}, bench.step.work.executor)
    arguments.only(known)
    return arguments


def meant(bench: Bench, arguments: Arguments) -> Artifact:
    """The artifact that a call names, as it is now."""
    name = ArtifactId(arguments.text("id").strip())
    found = bench.world.artifacts.get(artifact_key(bench.step.task_id, name))
    if found is None:
        raise ModelFault(f"There is no artifact {name!r} in this task. {inventory(bench)}")
    return found


def names_newest(arguments: Arguments, artifact: Artifact) -> bool:
    """Whether the call says which version it is made from; `ModelFault` when that is not the newest."""
    said = arguments.number("version", 0, 1, 10**9)
    if said and said != artifact.version:
        there = f"is at version {artifact.version} by {artifact.by}, not {said}"
        raise ModelFault(f"{artifact.artifact_id!r} {there}. Read it again first. Nothing was written.")
    return bool(said)


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


@record
class Version:
    """A version to be: what it is called, its content, and the one that it was made from. `blind` says that it does not
    depend on the content of that one."""

    name: str
    title: str
    media_type: str
    made: Made
    old: Artifact | None = None
    blind: bool = False


async def written(bench: Bench, version: Version) -> Outcome:
    """The version, unless a rule is against it. The rules are asked again when it counts: others write meanwhile."""
    content, old = version.made.content, version.old
    intent = WriteArtifact(
        task_id=bench.step.task_id,
        artifact_id=ArtifactId(version.name),
        title=version.title,
        media_type=version.media_type,
        blob="",
        size=len(content),
        lines=content.count(b"\n") + bool(content and not content.endswith(b"\n")),
        based_on=old.version if old is not None else 0,
    )
    refused = refusal(bench.world, intent, bench.agent.agent_id)
    if refused is not None:
        raise ModelFault(str(refused))
    blob = await bench.keep(content)
    entry = {"path": version.name, "before": old.blob if old else "", "digest": blob, "whole": version.blind}
    told_of = f"Version {intent.based_on + 1} of {version.made.told}"
    return Outcome(
        result={"output": told_of, "version": intent.based_on + 1, "files": [entry]},
        intents=(evolve(intent, blob=blob),),
        blobs=(blob,),
        origins=origins(old) if old is not None else (),
    )
