"""Rules for the artifacts of a task: its group writes them, and nobody writes over what they have not seen."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.errors import Rejected
from greenroom.core.rules.board import may_write
from greenroom.core.rules.draft import Draft, Verdict
from greenroom.core.rules.intents import WriteArtifact
from greenroom.core.state.artifact import Artifact, ArtifactWritten
from greenroom.core.state.world import World, artifact_key

LARGEST: Final = 1_048_576
"""Bytes of an artifact."""

MOST: Final = 200
"""Artifacts of a task."""

VERSIONS: Final = 1_000
"""Versions of an artifact. Whoever has written it so often does not get anywhere."""

LONGEST: Final = 120
"""Characters of its id, its title and its media type."""


def write_artifact(draft: Draft, intent: WriteArtifact, by: str) -> Verdict:
    """One more version of an artifact, or its first."""
    refused = refusal(draft.world, intent, by)
    if refused is not None:
        return refused
    if draft.cause is None or intent.blob not in draft.cause.blobs:
        why = f"The content of {intent.artifact_id!r} is not kept: only a step that has kept it can write it."
        return Rejected(code="content_not_kept", why=why)
    artifact = Artifact(
        task_id=intent.task_id,
        artifact_id=intent.artifact_id,
        title=intent.title,
        media_type=intent.media_type,
        blob=intent.blob,
        size=intent.size,
        lines=intent.lines,
        by=by,
        at=draft.now,
        version=intent.based_on + 1,
    )
    draft.emit(ArtifactWritten(at=draft.now, artifact=artifact))
    return None


def refusal(world: World, intent: WriteArtifact, by: str) -> Verdict:
    """Why it cannot be written in this world. A tool asks beforehand, so that its agent hears of it at once."""
    refused = may_write(world, intent.task_id, by) or _misfit(intent)
    if refused is not None:
        return refused
    old = world.artifacts.get(artifact_key(intent.task_id, intent.artifact_id))
    if old is None:
        return _first(world, intent)
    if intent.based_on != old.version:
        return _not_so(intent, old)
    if old.version >= VERSIONS:
        why = f"The artifact {old.artifact_id!r} was written {VERSIONS:,} times, which is all that is allowed."
        return Rejected(code="too_many_versions", why=why, hint="Begin another one if there is still a need.")
    return None


def _first(world: World, intent: WriteArtifact) -> Verdict:
    here = world.inventory(intent.task_id)
    if intent.based_on:
        known = ", ".join(one.artifact_id for one in here[:12]) or "none"
        why = f"There is no artifact {intent.artifact_id!r} in this task."
        return Rejected(code="unknown_artifact", why=why, hint=f"There are: {known}. create_artifact makes one.")
    if len(here) >= MOST:
        why = f"This task has {MOST} artifacts, which is all that is allowed."
        return Rejected(code="too_many_artifacts", why=why, hint="Write into one of them.")
    return None


def _not_so(intent: WriteArtifact, old: Artifact) -> Rejected:
    """It was not made from what is there."""
    there = f"version {old.version} by {old.by}"
    if not intent.based_on:
        why = f"There is an artifact {old.artifact_id!r} already ({there})."
        return Rejected(code="artifact_exists", why=why, hint="Change it with update_artifact, or take another id.")
    why = f"The artifact {old.artifact_id!r} is at {there}; this was made from version {intent.based_on}."
    hint = "Nothing was written. Read it with read_artifact, then change what is there now."
    return Rejected(code="artifact_changed", why=why, hint=hint)


def _misfit(intent: WriteArtifact) -> Verdict:
    for name, text in (("id", intent.artifact_id), ("title", intent.title), ("media type", intent.media_type)):
        if not text.strip() or text != text.strip() or len(text) > LONGEST or not text.isprintable():
            why = f"The {name} of an artifact is one line of {LONGEST} characters at most, not {text[:LONGEST]!r}."
            return Rejected(code="bad_artifact", why=why, hint="Take something like 'task_plan' or 'main.py'.")
    if ".." in intent.artifact_id.split("/") or intent.artifact_id.startswith("/") or "\\" in intent.artifact_id:
        why = f"An artifact is no file and has no path: {intent.artifact_id!r} cannot be its id."
        return Rejected(code="bad_artifact", why=why, hint="Take something like 'task_plan' or 'main.py'.")
    if intent.size > LARGEST:
        why = f"The artifact {intent.artifact_id!r} would have {intent.size:,} bytes; {LARGEST:,} are allowed."
        return Rejected(code="artifact_too_large", why=why, hint="Cut it, or make several of it.")
    return None
