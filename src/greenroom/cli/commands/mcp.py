"""`greenroom mcp`: the MCP servers here, whether they work, what has changed in them, and a person's own ones."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

import typer
from rich.text import Text

from greenroom.app.settings.layers import user_file
from greenroom.app.settings.schema import Settings
from greenroom.app.toolset.mcp import (
    Found,
    Known,
    OwnFile,
    Seen,
    Servers,
    Wanted,
    look,
    masked,
    own_listings,
    servers_in,
    surroundings,
)
from greenroom.app.trust import own_ledger
from greenroom.cli.context import Invocation, command, refused
from greenroom.cli.exit_codes import Exit
from greenroom.cli.render.output import Column, Fitted, harmless, row
from greenroom.cli.render.questions import confirm
from greenroom.cli.render.words import shorten
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data

SERVERS: Final = (
    Column(name="server"),
    Column(name="whose"),
    Column(name="tools"),
    Column(name="what", gives=True, needs=60, style="dim"),
)
TOOLS: Final = (Column(name="tool"), Column(name="what it says of itself", gives=True))
LINE: Final = 100
NOT_ADDED: Final = "Nothing was changed. --force adds it all the same."
ServerName: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="Its name, as `greenroom mcp list` has it.")]
Several: TypeAlias = list[str] | None


def _settings(cli: Invocation) -> Settings:
    return cli.means.provisions.loaded.settings


def _servers(cli: Invocation) -> Servers:
    return servers_in(cli.means.root, _settings(cli))


def _is_trusted(cli: Invocation, found: Found) -> bool:
    """Whether the person has agreed to its being started here."""
    return found.own or own_ledger().trusted(cli.means.root)(found.brought)


async def _look(cli: Invocation, found: Found, known: Known | None = None) -> Seen:
    """Start it, see what it has, end it."""
    cli.progress.note(f"Starting {harmless(found.server.name)} …", style="dim")
    return await look(found, surroundings(found, cli.means.root, os.environ, _settings(cli)), known)


async def mcp_list(cli: Invocation) -> Exit:
    """List the MCP servers here: your own, and those that the project brings in .mcp.json. None is started."""
    servers = _servers(cli)
    listed = [_fields(cli, found) for found in servers.found]
    cli.out.listing("server", listed)
    if listed:
        keys = ("name", "whose", "state", "what")
        cli.out.show(Fitted(SERVERS, [row(*(harmless(str(told[key])) for key in keys)) for told in listed]))
    else:
        _note_none(cli)
    for hidden in servers.hidden:
        name = hidden.server.name
        cli.progress.note(f"The project's {name!r} is not used: yours of the same name is.", style="yellow")
    _note_faults(cli, servers.faults)
    return cli.out.result("ok", Exit.DONE, faults=list(servers.faults))


def _fields(cli: Invocation, found: Found) -> Data:
    known = own_listings().of(found)
    state = _counted(len(known.offered)) if known is not None else "not looked at"
    if not _is_trusted(cli, found):
        state = "not agreed to"
    if not found.server.enabled:
        state = "switched off"
    return {
        "name": found.server.name,
        "whose": "yours" if found.own else "the project's",
        "what": masked(found.server),
        "state": state,
        "tools": None if known is None else len(known.offered),
    }


def _note_none(cli: Invocation) -> None:
    cli.progress.note(f"There is none. Add one: {command(cli, 'mcp', 'add')} NAME -- COMMAND ARGS…")


def _note_faults(cli: Invocation, faults: Sequence[str]) -> None:
    for fault in faults:
        cli.progress.note(harmless(fault), style="yellow")


async def mcp_check(
    cli: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Only this one.")] = "",
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Agree to tools that have changed.")] = False,
) -> Exit:
    """Start MCP servers; say what they have, and what differs from what you agreed to. Exit code 1 if one is wrong."""
    servers, name = _servers(cli), name.strip()
    chosen = [servers.named(name)] if name else [found for found in servers.found if found.server.enabled]
    cli.out.expect("servers")
    faults = () if name else servers.faults
    _note_faults(cli, faults)
    right = not faults
    for found in chosen:
        checked = await _check(cli, found, yes=yes)
        cli.out.item("server", checked)
        right = right and bool(checked["agreed"])
    if not chosen:
        _note_none(cli)
    return cli.out.result("ok" if right else "failed", Exit.DONE if right else Exit.FAILED, faults=list(faults))


async def _check(cli: Invocation, found: Found, *, yes: bool) -> Data:
    """Start a server and say how it is; returns the same for programs. `agreed` says that its tools are used now."""
    name = found.server.name
    if not _is_trusted(cli, found):
        return _failed(cli, name, f"The project brings {name!r}; it is not started before you agree: greenroom trust")
    known = own_listings().latest(found)
    try:
        seen = await _look(cli, found, known)
    except WorldFault as fault:
        return _failed(cli, name, str(fault))
    _show_checked(cli, name, seen, first=known is None)
    differs = bool(seen.catalogue.changes)
    may_ask = cli.out.text and sys.stdin.isatty()
    agreed = not differs or yes or (may_ask and confirm("Agree to this? [y/N] "))
    if agreed:
        own_listings().keep(found, seen.catalogue.listed)
    if differs:
        again = command(cli, "mcp", "check", shlex.quote(name), "--yes")
        cli.progress.note("Agreed." if agreed else f"What differs is not used. Agree to it: {again}", style="yellow")
    changes = [{"name": change.name, "how": change.how, "diff": change.diff} for change in seen.catalogue.changes]
    return {"name": name, "works": True, "agreed": agreed, **_seen_fields(seen), "changes": changes}


def _failed(cli: Invocation, name: str, fault: str) -> Data:
    cli.out.show(Text(f"✗ {harmless(name)}", style="red"), f"  {harmless(fault)}")
    return {"name": name, "works": False, "agreed": False, "fault": fault}


def _show_checked(cli: Invocation, name: str, seen: Seen, *, first: bool) -> None:
    changes = seen.catalogue.changes
    if changes:
        differ = "1 tool differs" if len(changes) == 1 else f"{len(changes)} tools differ"
        cli.out.show(Text(f"! {harmless(name)}: {differ} from what you agreed to", style="yellow"))
        for change in changes:
            cli.out.show(Text(f"  {change.how}: {harmless(change.name)}", style="yellow"))
            for line in harmless(change.diff).splitlines():
                cli.out.show(Text(f"    {line}", style={"+": "green", "-": "red"}.get(line[:1], "dim")))
        _note_left_out(cli, seen)
        return
    cli.out.show(Text(f"✓ {harmless(name)}", style="green"))
    if first:
        _show_tools(cli, seen)
    else:
        cli.out.show(f"  It speaks MCP {seen.version} and has {_counted(len(seen.catalogue.offered))}, as you agreed.")
        _note_left_out(cli, seen)


def _seen_fields(seen: Seen) -> Data:
    """What a server has, for programs."""
    offered, left_out = seen.catalogue.offered.values(), seen.catalogue.left_out
    return {
        "version": seen.version,
        "tools": [{"name": tool.name, "description": tool.description} for tool in offered],
        "left_out": [{"name": left.name, "why": left.why} for left in left_out],
    }


def _show_tools(cli: Invocation, seen: Seen) -> None:
    """A server's tools for people, and what is left out. Its words are a stranger's."""
    offered = seen.catalogue.offered.values()
    rows = [row(tool.name, shorten(harmless(" ".join(tool.description.split())), LINE)) for tool in offered]
    cli.out.show(f"It speaks MCP {seen.version} and has {_counted(len(rows))}.")
    if rows:
        cli.out.show(Fitted(TOOLS, rows))
    _note_left_out(cli, seen)


def _note_left_out(cli: Invocation, seen: Seen) -> None:
    for left in seen.catalogue.left_out:
        cli.progress.note(f"Left out: {harmless(left.name)}. {harmless(left.why)}", style="yellow")


def _counted(tools: int) -> str:
    return "1 tool" if tools == 1 else f"{tools} tools"


async def mcp_add(
    cli: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is to be called: its tools are named after it.")],
    words: Annotated[
        Several, typer.Argument(metavar="URL|COMMAND", help="Its address; or, behind `--`, the program to start.")
    ] = None,
    *,
    env: Annotated[
        Several,
        typer.Option("--env", metavar="K=V", help="What a program is given; K alone: your variable. Again for more."),
    ] = None,
    header: Annotated[
        Several,
        typer.Option("--header", metavar="K=V", help="What an address is sent, like Authorization='Bearer ${TOKEN}'."),
    ] = None,
    read_only: Annotated[
        Several, typer.Option("--read-only", metavar="TOOL", help="A tool of which you say that it changes nothing.")
    ] = None,
    cwd: Annotated[
        str, typer.Option("--cwd", metavar="PATH", help="Where a program begins; `.` is the workspace.")
    ] = "",
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="How long a call may take. [default: 120]")
    ] = None,
    start_timeout: Annotated[
        float | None, typer.Option("--start-timeout", metavar="SECONDS", help="How long its start may take.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Add it although it does not work now.")] = False,
) -> Exit:
    """Start an MCP server, show its tools, and add it to your own settings. A program stands behind `--`."""
    wanted = Wanted(
        name=name.strip(),
        words=tuple(words or ()),
        env=tuple(env or ()),
        headers=tuple(header or ()),
        read_only=tuple(read_only or ()),
        cwd=cwd,
        timeout=timeout,
        start_timeout=start_timeout,
    )
    return await _add(cli, wanted, force=force)


async def _add(cli: Invocation, wanted: Wanted, *, force: bool) -> Exit:
    """Refuse all that can be refused; then look at the server; then write it down."""
    found, file, name = wanted.found(), OwnFile(user_file(os.environ)), wanted.name
    if name in _settings(cli).mcp:
        hint = f"Remove it first: {command(cli, 'mcp', 'remove', name)}"
        raise refused("exists", f"You have an MCP server {name!r} already.", hint)
    file.check(name, wanted.table)
    cli.out.begin(name=name)
    seen: Seen | None = None
    try:
        seen = await _look(cli, found)
    except WorldFault as fault:
        if not force:
            raise WorldFault(f"{fault} {NOT_ADDED}") from None
        cli.progress.note(str(fault), style="red")
    file.add(name, wanted.table)
    if seen is not None:
        own_listings().keep(found, seen.catalogue.listed)
    cli.out.show(f"Added: {name} (in {file.path})")
    if any(each.server.name == name for each in _servers(cli).found if not each.own):
        cli.progress.note("The project has one of the same name, which is not used any more: yours is.", style="yellow")
    if seen is None:
        check = command(cli, "mcp", "check", shlex.quote(name))
        cli.progress.note(f"It is not used before you have looked at its tools: {check}", style="yellow")
        return cli.out.result("added", Exit.DONE, file=str(file.path), works=False)
    _show_tools(cli, seen)
    cli.progress.note("\nAn agent has them whose file says `groups: [mcp]`, or names them under `tools`.")
    return cli.out.result("added", Exit.DONE, file=str(file.path), works=True, **_seen_fields(seen))


async def mcp_remove(cli: Invocation, name: ServerName) -> Exit:
    """Take one of your own MCP servers out of your settings."""
    name = name.strip()
    found = _servers(cli).named(name)
    if not found.own:
        hint = 'Take it out of .mcp.json, or switch it off there with "disabled": true.'
        raise refused("not_yours", f"The project brings the MCP server {name!r}.", hint)
    file = OwnFile(user_file(os.environ))
    file.remove(name)
    own_listings().forget(found)
    cli.out.begin(name=name)
    cli.out.show(f"Removed: {name} (from {file.path})")
    return cli.out.result("removed", Exit.DONE, file=str(file.path))
