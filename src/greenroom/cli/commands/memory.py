"""`greenroom memory`: what agents remember of this project and for all projects, and how it is kept tidy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import msgspec
import typer
from rich.text import Text

from greenroom.app.clock import SystemClock
from greenroom.app.library.agent import Agent
from greenroom.app.library.greenroom import Greenroom
from greenroom.app.memory_organizer import MERGER, MemoryOrganizer, import_record, parse_records, to_fields
from greenroom.app.messages import count_things, translate
from greenroom.app.settings.home import create_file
from greenroom.app.words import shorten
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.plan_review import read_named_file
from greenroom.cli.options import DEFAULT_OPTIONS, RunOptions
from greenroom.cli.render.output import Column, FittedTable, make_row, strip_control_characters
from greenroom.core.base.errors import ModelFault, WorldFault, make_refusal
from greenroom.core.state.knowledge import Memory, MemoryType

TYPES: Final[dict[str, MemoryType]] = {
    "project": "project_long_term",
    "global": "global_long_term",
    "project_long_term": "project_long_term",
    "global_long_term": "global_long_term",
}
COLUMNS: Final = (
    Column(name="id"),
    Column(name="type", style="dim", min_terminal_width=80),
    Column(name="tags", can_shrink=True, min_terminal_width=60),
    Column(name="memory", can_shrink=True),
)
MAX_LINE_CHARS: Final = 120


def _check_type(name: str) -> str:
    if name not in TYPES:
        raise typer.BadParameter(translate("memory.unknown_type", name=name))
    return TYPES[name]


def _check_types(names: list[str] | None) -> list[str]:
    return list(dict.fromkeys(map(_check_type, names or ("project", "global"))))


Types: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--type", "-t", metavar="TYPE", callback=_check_types, help="project or global. Repeatable."),
]
Tags: TypeAlias = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="With this tag. Repeatable.")]
Limit: TypeAlias = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Show at most N.")]
OfAgent: TypeAlias = Annotated[str, typer.Option("--agent", metavar="NAME", help="What this agent keeps for itself.")]


def _select(cli: Invocation, types: Sequence[str] | None, agent: str = "") -> list[MemoryType]:
    """Return the types to look at. A shared folder has no memories of a project."""
    if agent:
        return ["agent"]
    return [type_ for type_ in cli.app.memories().types if type_ in (types or ())]


async def memory_list(
    cli: Invocation, *, types: Types = None, agent: OfAgent = "", tags: Tags = None, limit: Limit = 50
) -> None:
    """List what agents remember here.

    The newest comes first.

    Examples:
      greenroom memory list
      greenroom memory list --type global --tag deploy

    Exit codes: 0; 2; 3.
    """
    _show(cli, "", types, agent, tags, limit)


async def memory_search(
    cli: Invocation,
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What it is about.")],
    *,
    types: Types = None,
    agent: OfAgent = "",
    tags: Tags = None,
    limit: Limit = 10,
) -> None:
    """Search what agents remember here.

    The best match comes first. English words match in all their forms.

    Examples:
      greenroom memory search restart the server
      greenroom memory search 登录 --type project

    Exit codes: 0; 2; 3.
    """
    _show(cli, " ".join(words), types, agent, tags, limit)


def _show(
    cli: Invocation, words: str, types: Sequence[str] | None, agent: str, tags: Sequence[str] | None, limit: int
) -> None:
    files, chosen = cli.app.memories(), _select(cli, types, agent)
    found = files.find(chosen, agent, words=words, tags=tags or (), limit=limit + 1)
    cli.out.listing("memory", map(to_fields, found[:limit]), many="memories")
    if found:
        rows = [
            make_row(
                *map(strip_control_characters, (item.memory_id, item.type, ", ".join(item.tags), _first_line(item)))
            )
            for item in found[:limit]
        ]
        cli.out.show(FittedTable(COLUMNS, rows))
    else:
        cli.progress.note(translate("memory.no_match" if words or tags else "memory.none"))
    if len(found) > limit:
        cli.progress.note(translate("memory.more", limit=limit))
    for fault in (fault for type_ in chosen for fault in files.list_faults(type_, agent)):
        cli.progress.note(strip_control_characters(f"! {fault}"), style="yellow")


def _first_line(memory: Memory) -> str:
    return shorten(memory.content.strip().partition("\n")[0], MAX_LINE_CHARS)


async def memory_show(
    cli: Invocation, name: Annotated[str, typer.Argument(metavar="ID")], *, agent: OfAgent = ""
) -> Exit:
    """Show a memory.

    You see its tags, when it was saved and by which agent, and its text.

    Examples:
      greenroom memory show 20261119_072947_388226
      greenroom memory show 20261119_072947_388226 --agent keeper

    Exit codes: 0; 2; 3.
    """
    files = cli.app.memories()
    for memory in (
        found for type_ in _select(cli, list(TYPES.values()), agent) for found in files.get(type_, (name,), agent)
    ):
        fields = to_fields(memory)
        for key in (key for key in fields if key != "content"):
            value = fields[key]
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            cli.out.show(Text(strip_control_characters(f"{key}: {text}"), style="dim"))
        cli.out.write(f"{strip_control_characters(memory.content)}\n")
        return cli.out.result("ok", Exit.DONE, memory=fields)
    command = render_command(cli, "memory", "list")
    raise make_refusal(
        "unknown_memory", translate("memory.unknown", name=name), translate("memory.see_list", command=command)
    )


async def memory_organize(
    cli: Invocation,
    *,
    type_: Annotated[
        str, typer.Option("--type", "-t", metavar="TYPE", callback=_check_type, help="project or global.")
    ] = "project",
    min_overlap: Annotated[
        int, typer.Option("--min-overlap", metavar="N", min=2, help="Merge those that share N tags.")
    ] = 2,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be merged.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Bring back what the last merging replaced.")] = False,
    model: Annotated[
        str, typer.Option("--model", "-m", "-g", metavar="NAME", help="provider:model, a role or a group.")
    ] = "",
    options: RunOptions = DEFAULT_OPTIONS,
) -> Exit:
    """Merge memories that share tags.

    A model makes one memory of each group. It is written before the old ones go, and --undo
    brings them back.

    Examples:
      greenroom memory organize --dry-run
      greenroom memory organize --type global --min-overlap 3
      greenroom memory organize --undo

    Exit codes: 0; 1 a group could not be merged; 2; 3; 4; 5.
    """
    if undo and dry_run:
        raise typer.BadParameter(translate("memory.undo_or_dry"))
    scope = next(known for known in TYPES.values() if known == type_)
    organizer = MemoryOrganizer(cli.app.memories(), scope, SystemClock().now())
    if undo:
        back = organizer.undo()
        memories = count_things("memory", sum(len(item.merged_from) for item in back))
        cli.out.show(translate("memory.undone" if back else "memory.nothing_to_undo", memories=memories))
        return cli.out.result("undone", Exit.DONE, removed=[item.memory_id for item in back])
    groups = organizer.find_groups(min_overlap, completes=not dry_run)
    cli.out.listing("group", ({"memories": [item.memory_id for item in group]} for group in groups))
    if not groups:
        cli.progress.note(translate("memory.nothing_to_merge", count=min_overlap))
    if dry_run or not groups:
        for group in groups:
            cli.out.show(
                Text(translate("memory.would_merge", memories=count_things("memory", len(group))), style="bold")
            )
            cli.out.show(*(Text(strip_control_characters(f"  {item.memory_id} {_first_line(item)}")) for item in group))
        return cli.out.result("ok", Exit.DONE, groups=len(groups), merged=[], failed=[])
    options.apply(cli.app)
    return await _merge_groups(cli, organizer, groups, model.strip())


async def _merge_groups(
    cli: Invocation, organizer: MemoryOrganizer, groups: Sequence[Sequence[Memory]], model: str
) -> Exit:
    """Merge each group with its own request. A group that cannot be merged stays as it is."""
    session, merged, failed = cli.app.model_session, list[str](), list[str]()
    await session.find_local_servers()
    agent = Agent(MERGER, model=session.resolve_alias(model), instructions=translate("memory.instructions"))
    async with Greenroom(in_memory=True, models=session, limits=session.loaded_settings.settings.limits.limits) as home:

        async def ask(prompt: str) -> str:
            return (await home.run(agent, prompt)).text

        for group in groups:
            try:
                memory = await organizer.merge(group, ask, cli.app.language)
            except ModelFault as fault:
                failed.append(f"{', '.join(item.memory_id for item in group)}: {fault}")
                continue
            merged.append(memory.memory_id)
            cli.out.show(translate("memory.merged", memories=count_things("memory", len(group)), name=memory.memory_id))
    for text in failed:
        cli.progress.note(strip_control_characters(translate("memory.not_merged", text=text)), style="yellow")
    if merged:
        command = render_command(cli, "memory", "organize", "--undo")
        cli.progress.note(translate("memory.undo_hint", command=command))
    code = Exit.FAILED if failed else Exit.DONE
    return cli.out.result("failed" if failed else "ok", code, groups=len(groups), merged=merged, failed=failed)


async def memory_export(
    cli: Invocation,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A new file.")],
    *,
    types: Types = None,
    tags: Tags = None,
) -> Exit:
    """Write memories to a JSON file.

    A file that exists is never overwritten.

    Examples:
      greenroom memory export memories.json
      greenroom memory export deploy.json --type project --tag deploy

    Exit codes: 0; 2; 3.
    """
    found = cli.app.memories().find(_select(cli, types), tags=tags or ())
    content = msgspec.json.format(msgspec.json.encode(list(map(to_fields, found)))).decode()
    try:
        create_file(Path(file), f"{content}\n")
    except FileExistsError:
        raise make_refusal("exists", translate("memory.file_exists", path=file)) from None
    cli.out.show(translate("memory.exported", memories=count_things("memory", len(found)), path=file))
    return cli.out.result("ok", Exit.DONE, count=len(found), file=file)


async def memory_import(
    cli: Invocation,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file of `greenroom memory export`.")],
    *,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace memories that have the same id.")] = False,
) -> Exit:
    """Read memories from a JSON file.

    A bad record is reported, and the others are read.

    Examples:
      greenroom memory import memories.json
      greenroom memory import memories.json --overwrite

    Exit codes: 0; 1 a record is bad; 2; 3.
    """
    files, counts, faults = cli.app.memories(), Counter[bool](), list[str]()
    for number, record in enumerate(parse_records(read_named_file(Path(file))), start=1):
        try:
            counts[import_record(files, record, overwrite=overwrite)] += 1
        except WorldFault as fault:
            faults.append(translate("memory.bad_record", number=number, why=fault))
            cli.progress.note(strip_control_characters(f"! {faults[-1]}"), style="yellow")
    count, skipped = counts[True], counts[False]
    cli.out.show(translate("memory.imported", memories=count_things("memory", count)))
    if skipped:
        cli.progress.note(translate("memory.skipped", memories=count_things("memory", skipped)))
    code = Exit.FAILED if faults else Exit.DONE
    return cli.out.result("failed" if faults else "ok", code, imported=count, skipped=skipped, faults=faults)
