"""`greenroom artifacts`: list, show, compare, export and restore the artifacts of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from greenroom.app.artifacts import (
    add_sources,
    compare_versions,
    export_artifacts,
    find_version,
    find_versions,
    list_versions,
    read_text,
    restore_version,
)
from greenroom.app.lookup import TaskReference, resolve_id
from greenroom.app.messages import translate
from greenroom.cli.commands.runs import format_ago
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.options import Id
from greenroom.cli.render.output import Column, FittedTable, make_row, strip_control_characters
from greenroom.core.ports.codec import to_json_dict
from greenroom.core.rules.knowledge import PERSON

COLUMNS: Final = (
    Column(name="artifact"),
    Column(name="version", right=True),
    Column(name="by"),
    Column(name="step", style="dim", min_terminal_width=70),
    Column(name="written", min_terminal_width=60),
    Column(name="why", can_shrink=True),
)
ArtifactId: TypeAlias = Annotated[
    str, typer.Argument(metavar="ARTIFACT", help="Its id; the only result if left out.", show_default=False)
]
Version: TypeAlias = Annotated[
    int | None, typer.Option("--version", min=1, metavar="N", help="This version instead of the newest.")
]


async def artifacts_list(cli: Invocation, name: Id) -> Exit:
    """List the artifacts of a run with every version.

    Each row says who wrote the version, in which step, and why.

    Examples:
      greenroom artifacts list last
      greenroom artifacts list last --output-format json

    Exit codes: 0; 2; 3.
    """
    reference = await resolve_id(cli.runtime, name)
    versions = await list_versions(cli.runtime, reference)
    rows = [(known, version) for known, entries in versions.items() for version in entries]
    cli.out.listing("artifact", [{**to_json_dict(version), "name": known} for known, version in rows])
    if not rows:
        cli.progress.note(translate("artifacts.none"))
    elif cli.out.is_text:
        cells = []
        for known, version in rows:
            by = translate("artifacts.you") if version.by == PERSON else version.by
            facts = (known, str(version.version), by, version.step, format_ago(version.at), version.reason)
            cells.append(make_row(*map(strip_control_characters, facts)))
        cli.out.show(FittedTable(COLUMNS, cells))
    return cli.out.result("ok", Exit.DONE, team=reference.team)


async def artifacts_show(cli: Invocation, name: Id, artifact: ArtifactId = "", *, version: Version = None) -> Exit:
    """Print an artifact with its sources.

    A quote that is not on the page that it cites is marked.

    Examples:
      greenroom artifacts show last
      greenroom artifacts show last task_plan --version 1

    Exit codes: 0; 2; 3.
    """
    reference = await resolve_id(cli.runtime, name)
    found = find_version(find_versions(await list_versions(cli.runtime, reference), artifact), version)
    text = add_sources(found, await read_text(cli.runtime, found))
    cli.out.write(strip_control_characters(text.rstrip("\n")) + "\n")
    return cli.out.result("ok", Exit.DONE, team=reference.team, artifact=to_json_dict(found), text=text)


async def artifacts_diff(
    cli: Invocation,
    name: Id,
    artifact: ArtifactId = "",
    *,
    old: Annotated[int | None, typer.Option("--from", min=1, metavar="N", help="Default: the one before.")] = None,
    new: Annotated[int | None, typer.Option("--to", min=1, metavar="N", help="Default: the newest.")] = None,
) -> Exit:
    """Show what changed between two versions of an artifact.

    By default it compares the newest version with the one before.

    Examples:
      greenroom artifacts diff last
      greenroom artifacts diff last research_report --from 1 --to 3

    Exit codes: 0; 2; 3.
    """
    reference = await resolve_id(cli.runtime, name)
    versions = find_versions(await list_versions(cli.runtime, reference), artifact)
    after = find_version(versions, new)
    before = find_version(versions, old or max(1, after.version - 1))
    text = await compare_versions(cli.runtime, before, after)
    cli.out.write(strip_control_characters(text))
    if not text:
        cli.progress.note(translate("artifacts.no_difference", old=before.version, new=after.version))
    return cli.out.result("ok", Exit.DONE, team=reference.team, old=before.version, new=after.version, diff=text)


async def artifacts_export(
    cli: Invocation,
    name: Id,
    artifact: Annotated[
        str, typer.Argument(metavar="ARTIFACT", help="Its id; all if left out.", show_default=False)
    ] = "",
    *,
    folder: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Where to write.")] = Path(),
    version: Version = None,
) -> Exit:
    """Write artifacts to files, with their sources at the end.

    A file that exists is never overwritten.

    Examples:
      greenroom artifacts export last --to report
      greenroom artifacts export last research_report --version 2

    Exit codes: 0; 2; 3.
    """
    reference = await resolve_id(cli.runtime, name)
    versions = await list_versions(cli.runtime, reference)
    chosen = [find_versions(versions, artifact)] if artifact or version or not versions else [*versions.values()]
    paths = await export_artifacts(cli.runtime, [find_version(entries, version) for entries in chosen], folder)
    cli.out.show(*map(str, paths))
    return cli.out.result("ok", Exit.DONE, team=reference.team, files=[str(path) for path in paths])


async def artifacts_restore(
    cli: Invocation,
    name: Id,
    artifact: Annotated[str, typer.Argument(metavar="ARTIFACT", help="Its id.")],
    *,
    version: Annotated[int, typer.Option("--version", min=1, metavar="N", help="The version to go back to.")],
) -> Exit:
    """Go back to a version of an artifact.

    It is written again as the newest version; no version is lost.

    Examples:
      greenroom artifacts restore last research_report --version 2
      greenroom artifacts restore last task_plan --version 1

    Exit codes: 0; 2; 3.
    """
    reference: TaskReference = await resolve_id(cli.runtime, name)
    versions = find_versions(await list_versions(cli.runtime, reference), artifact)
    number = await restore_version(cli.runtime, reference, versions, version)
    cli.out.show(translate("artifacts.restored_as", name=artifact, old=version, new=number))
    command = render_command(cli, "artifacts", "diff", reference.team, artifact)
    cli.progress.note(translate("report.try_next", command=command))
    return cli.out.result("restored", Exit.DONE, team=reference.team, version=number)
