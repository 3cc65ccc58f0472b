"""Artifacts of a run as people use them: all versions, their text, differences, export, and going back."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from greenroom.abilities.tools.artifacts import MARKS
from greenroom.app.lookup import TaskReference
from greenroom.app.messages import current_language, translate
from greenroom.app.runtime import Runtime
from greenroom.app.settings.schema import suggest_name
from greenroom.core.base.errors import make_refusal
from greenroom.core.ports.codec import decode_archived
from greenroom.core.rules.intents import WriteArtifact
from greenroom.core.state.knowledge import Artifact, Citation

PLAN_ID: Final = "task_plan"
TEXT_TYPES: Final = ("text/markdown", "text/plain")

Versions = Mapping[str, Sequence[Artifact]]
"""The versions of each artifact, by `id`, or `task/id` if several tasks have artifacts."""


async def list_versions(runtime: Runtime, reference: TaskReference, at: int | None = None) -> Versions:
    """Return all versions of all artifacts of a run or task, oldest first; with `at`, those at a version of the run."""
    rows, after = list[Artifact](), 0
    while page := await runtime.log.read_archive(reference.team, "artifact", after=after):
        found_rows = [decode_archived(row) for row in page if at is None or row.version <= at]
        rows += [row for row in found_rows if isinstance(row, Artifact) and reference.task in (None, row.task_id)]
        after = page[-1].version
    several = len({row.task_id for row in rows}) > 1
    found: dict[str, list[Artifact]] = {}
    for row in rows:
        found.setdefault(f"{row.task_id}/{row.artifact_id}" if several else row.artifact_id, []).append(row)
    return dict(sorted(found.items()))


def find_versions(versions: Versions, name: str) -> Sequence[Artifact]:
    """Return the versions of an artifact. Without a name, return the only result. Raise `RefusedError` if unknown."""
    results = [known for known in versions if known.rpartition("/")[2] != PLAN_ID] or [*versions]
    wanted = name or (results[0] if len(results) == 1 else "")
    if wanted in versions:
        return versions[wanted]
    if not versions:
        raise make_refusal("no_artifacts", translate("artifacts.none"))
    hint = suggest_name(name, versions) if name else translate("hints.there", there=", ".join(versions))
    raise make_refusal(
        "unknown_artifact", translate("artifacts.name_one" if not name else "artifacts.unknown", name=name), hint
    )


def find_version(versions: Sequence[Artifact], number: int | None) -> Artifact:
    """Return a version of an artifact, the newest by default. Raise `RefusedError` if there is no such version."""
    newest = versions[-1]
    found = newest if number is None else next((entry for entry in versions if entry.version == number), None)
    if found is None:
        values = {"name": newest.artifact_id, "number": number, "newest": newest.version}
        raise make_refusal("unknown_version", translate("artifacts.no_version", **values))
    return found


async def read_text(runtime: Runtime, artifact: Artifact) -> str:
    """Return the text of a version."""
    return (await runtime.log.get_blob(artifact.blob)).decode("utf-8", "replace")


_MARK: Final = re.compile(r"\[(\d{1,3})\](?![(:])")
_CODE: Final = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def render_sources(citations: Iterable[Citation]) -> Iterator[str]:
    """Yield a line per source: its number, address, time, hash and quote, and what is wrong with it."""
    marks = MARKS["zh" if current_language().startswith("zh") else "en"]
    for entry in sorted(citations, key=lambda citation: citation.number):
        where = " ".join(filter(None, (entry.title and f"{entry.title}.", f"<{entry.url}>")))
        when = translate("artifacts.retrieved", at=entry.retrieved, digest=entry.digest[:12]) if entry.digest else ""
        mark = f" **{marks[entry.problem]}**" if entry.problem else ""
        yield f"{entry.number}. {where}{when}: “{' '.join(entry.quote.split())}”{mark}"


def add_sources(artifact: Artifact, text: str) -> str:
    """Return the text of a version with its sources at the end, and the marks `[n]` that have none."""
    if artifact.media_type not in TEXT_TYPES:
        return text
    cited = {citation.number for citation in artifact.citations}
    unknown = sorted({int(number) for number in _MARK.findall(_CODE.sub("", text))} - cited)
    if unknown:  # an agent can write a mark and a source by itself
        numbers = ", ".join(f"[{number}]" for number in unknown)
        text = f"{text.rstrip()}\n\n**{translate('artifacts.not_cited', numbers=numbers)}**\n"
    if not cited:
        return text
    lines = "\n".join(render_sources(artifact.citations))
    return f"{text.rstrip()}\n\n## {translate('artifacts.sources')}\n\n{lines}\n"


async def compare_versions(runtime: Runtime, old: Artifact, new: Artifact) -> str:
    """Return the difference between two versions as a patch."""
    before, after = await read_text(runtime, old), await read_text(runtime, new)
    first, second = (f"{version.artifact_id} ({version.version})" for version in (old, new))
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), first, second, lineterm="")
    return "".join(f"{line}\n" for line in lines)


async def export_artifacts(runtime: Runtime, chosen: Iterable[Artifact], folder: Path) -> list[Path]:
    """Write artifacts into a folder, with their sources. Raise `RefusedError` if a file exists."""
    targets = [(artifact, folder / _make_file_name(artifact)) for artifact in chosen]
    _check_targets([path for _, path in targets], folder)
    for artifact, path in targets:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(add_sources(artifact, await read_text(runtime, artifact)))
    return [path for _, path in targets]


def _check_targets(paths: Sequence[Path], folder: Path) -> None:
    """Raise `RefusedError` if a file exists, is in the way of another, or would be outside the folder."""
    taken = next((path for path in paths if path.exists() or path.is_symlink()), None)
    if taken is not None:
        raise make_refusal("file_exists", translate("artifacts.file_exists", path=taken))
    for path in paths:
        parents = [parent for parent in path.parents if parent.is_relative_to(folder)]
        is_used = paths.count(path) > 1 or any(parent in paths or parent.is_file() for parent in parents)
        if is_used or not path.parent.resolve().is_relative_to(folder.resolve()):
            raise make_refusal("no_place", translate("artifacts.no_place", path=path))


def _make_file_name(artifact: Artifact) -> str:
    """Return a file name inside a folder: no hidden files, and `.md` for a text without suffix."""
    parts = [part.lstrip(".") or "_" for part in artifact.artifact_id.replace("\0", "_").split("/")]
    suffix = ".md" if "." not in parts[-1] and artifact.media_type == "text/markdown" else ""
    return f"{'/'.join(parts)}{suffix}"


async def restore_version(runtime: Runtime, reference: TaskReference, versions: Sequence[Artifact], number: int) -> int:
    """Go back to a version by writing a new one with its content. Return the new version."""
    wanted, newest = find_version(versions, number), versions[-1]
    if wanted.blob == newest.blob:
        values = {"name": wanted.artifact_id, "number": number}
        raise make_refusal("nothing_to_restore", translate("artifacts.same_already", **values))
    if wanted.task_id not in (await runtime.state(reference.team)).tasks:
        raise make_refusal("run_over", translate("artifacts.run_over", team=reference.team))
    intent = WriteArtifact(
        task_id=wanted.task_id,
        artifact_id=wanted.artifact_id,
        title=wanted.title,
        media_type=wanted.media_type,
        blob=wanted.blob,
        size=wanted.size,
        lines=wanted.lines,
        based_on=newest.version,
        reason=translate("artifacts.restored", number=number),
        citations=wanted.citations,
    )
    await runtime.ask(reference.team, intent)
    return newest.version + 1
