"""`greenroom mcp`: list, add, check and remove MCP servers."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias, cast

import typer
from rich.text import Text

from greenroom.app.messages import count_things, translate
from greenroom.app.settings.layers import user_file
from greenroom.app.settings.schema import Settings
from greenroom.app.toolset.mcp import (
    FoundServer,
    NewServer,
    ServerInspection,
    ServerListing,
    Servers,
    UserSettingsFile,
    build_server_environment,
    inspect_server,
    list_servers,
    open_listings,
)
from greenroom.app.trust import open_trust_store
from greenroom.app.words import shorten
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.render.output import Column, FittedTable, make_row, strip_control_characters
from greenroom.cli.render.questions import confirm
from greenroom.core.base.errors import WorldFault, make_refusal
from greenroom.core.base.records import Data

SERVER_COLUMNS: Final = (
    Column(name="server"),
    Column(name="whose"),
    Column(name="tools"),
    Column(name="what", can_shrink=True, min_terminal_width=60, style="dim"),
)
TOOL_COLUMNS: Final = (Column(name="tool"), Column(name="its description", can_shrink=True))
MAX_LINE_CHARS: Final = 100
STATE_KEYS: Final = {
    "not checked": "mcp.not_checked",
    "not trusted": "mcp.not_trusted",
    "switched off": "mcp.switched_off",
}
ServerName: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the server; see `greenroom mcp list`.")
]
TextList: TypeAlias = list[str] | None


def _read_settings(cli: Invocation) -> Settings:
    return cli.app.model_session.loaded_settings.settings


def _list_servers(cli: Invocation) -> Servers:
    return list_servers(cli.app.root, _read_settings(cli))


def _is_trusted(cli: Invocation, entry: FoundServer) -> bool:
    """Whether the person trusts the server to be started here."""
    return entry.is_own or open_trust_store().make_trust_check(cli.app.root)(entry.trust_item)


async def _inspect(cli: Invocation, entry: FoundServer, listing: ServerListing | None = None) -> ServerInspection:
    cli.progress.note(translate("mcp.starting", name=strip_control_characters(entry.server.name)), style="dim")
    return await inspect_server(
        entry, build_server_environment(entry, cli.app.root, os.environ, _read_settings(cli)), listing
    )


async def mcp_list(cli: Invocation) -> Exit:
    """List the MCP servers of this folder.

    These are your own, and those of the project's .mcp.json. No server is started.

    Examples:
      greenroom mcp list
      greenroom mcp list --output-format json

    Exit codes: 0; 2; 3.
    """
    servers = _list_servers(cli)
    listed_servers = [_server_fields(cli, entry) for entry in servers.entries]
    cli.out.listing("server", listed_servers)
    if listed_servers:
        cli.out.show(FittedTable(SERVER_COLUMNS, [_render_row(server_fields) for server_fields in listed_servers]))
    else:
        _note_none(cli)
    for hidden in servers.hidden:
        cli.progress.note(translate("mcp.project_hidden", name=hidden.server.name), style="yellow")
    _note_faults(cli, servers.faults)
    return cli.out.result("ok", Exit.DONE, faults=list(servers.faults))


def _render_row(server_fields: Data) -> list[Text]:
    key, count = STATE_KEYS.get(str(server_fields["state"])), cast("int", server_fields["tools"])
    state = translate(key) if key else count_things("tool", count)
    whose = translate("mcp.yours" if server_fields["whose"] == "yours" else "mcp.of_project")
    name, what = (strip_control_characters(str(server_fields[field])) for field in ("name", "what"))
    return make_row(name, whose, state, what)


def _server_fields(cli: Invocation, entry: FoundServer) -> Data:
    listing = open_listings().get(entry)
    count = 0 if listing is None else len(listing.offered_tools)
    state = "not checked" if listing is None else "1 tool" if count == 1 else f"{count} tools"
    if not _is_trusted(cli, entry):
        state = "not trusted"
    if not entry.server.enabled:
        state = "switched off"
    return {
        "name": entry.server.name,
        "whose": "yours" if entry.is_own else "the project's",
        "what": entry.masked_summary,
        "state": state,
        "tools": None if listing is None else len(listing.offered_tools),
    }


def _note_none(cli: Invocation) -> None:
    cli.progress.note(translate("mcp.none", command=render_command(cli, "mcp", "add", "NAME -- COMMAND ARGS…")))


def _note_faults(cli: Invocation, faults: Sequence[str]) -> None:
    for fault in faults:
        cli.progress.note(strip_control_characters(fault), style="yellow")


async def mcp_check(
    cli: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Check only this server.")] = "",
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept changed tools without asking.")] = False,
) -> Exit:
    """Start MCP servers and check their tools for changes.

    The tools are compared with those that you accepted. Without a name all servers are checked.

    Examples:
      greenroom mcp check
      greenroom mcp check time --yes

    Exit codes: 0; 1 a server fails or its tools differ; 2; 3.
    """
    servers, name = _list_servers(cli), name.strip()
    chosen = [servers.get(name)] if name else [entry for entry in servers.entries if entry.server.enabled]
    cli.out.expect("servers")
    faults = () if name else servers.faults
    _note_faults(cli, faults)
    is_right = not faults
    for entry in chosen:
        checked = await _check_server(cli, entry, yes=yes)
        cli.out.item("server", checked)
        is_right = is_right and bool(checked["agreed"])
    if not chosen:
        _note_none(cli)
    return cli.out.result("ok" if is_right else "failed", Exit.DONE if is_right else Exit.FAILED, faults=list(faults))


async def _check_server(cli: Invocation, entry: FoundServer, *, yes: bool) -> Data:
    """Start a server and print its state; return it as fields. `agreed` says that its tools can be used now."""
    name = entry.server.name
    if not _is_trusted(cli, entry):
        return _report_failure(cli, name, translate("mcp.project_server_untrusted", name=name))
    listing = open_listings().latest(entry)
    try:
        inspection = await _inspect(cli, entry, listing)
    except WorldFault as fault:
        return _report_failure(cli, name, str(fault))
    _show_checked(cli, name, inspection, is_first=listing is None)
    has_changes = bool(inspection.catalogue.changes)
    may_ask = cli.out.is_text and sys.stdin.isatty()
    agreed = not has_changes or yes or (may_ask and confirm(translate("mcp.accept_changes")))
    if agreed:
        open_listings().save(entry, inspection.catalogue.listed)
    if has_changes:
        again = render_command(cli, "mcp", "check", shlex.quote(name), "--yes")
        note = translate("mcp.accepted" if agreed else "mcp.changed_not_used", command=again)
        cli.progress.note(note, style="yellow")
    changes = [{"name": change.name, "how": change.how, "diff": change.diff} for change in inspection.catalogue.changes]
    return {"name": name, "works": True, "agreed": agreed, **_inspection_fields(inspection), "changes": changes}


def _report_failure(cli: Invocation, name: str, fault: str) -> Data:
    cli.out.show(Text(f"✗ {strip_control_characters(name)}", style="red"), f"  {strip_control_characters(fault)}")
    return {"name": name, "works": False, "agreed": False, "fault": fault}


def _show_checked(cli: Invocation, name: str, inspection: ServerInspection, *, is_first: bool) -> None:
    changes = inspection.catalogue.changes
    if changes:
        key = "mcp.one_differs" if len(changes) == 1 else "mcp.several_differ"
        differ = translate(key, name=strip_control_characters(name), count=len(changes))
        cli.out.show(Text(differ, style="yellow"))
        for change in changes:
            cli.out.show(Text(f"  {change.how}: {strip_control_characters(change.name)}", style="yellow"))
            for line in strip_control_characters(change.diff).splitlines():
                cli.out.show(Text(f"    {line}", style={"+": "green", "-": "red"}.get(line[:1], "dim")))
        _note_left_out(cli, inspection)
        return
    cli.out.show(Text(f"✓ {strip_control_characters(name)}", style="green"))
    if is_first:
        _show_tools(cli, inspection)
    else:
        tools = count_things("tool", len(inspection.catalogue.offered))
        cli.out.show(f"  {translate('mcp.unchanged', version=inspection.version, tools=tools)}")
        _note_left_out(cli, inspection)


def _inspection_fields(inspection: ServerInspection) -> Data:
    offered, left_out = inspection.catalogue.offered.values(), inspection.catalogue.left_out
    return {
        "version": inspection.version,
        "tools": [{"name": tool.name, "description": tool.description} for tool in offered],
        "left_out": [{"name": left.name, "why": left.why} for left in left_out],
    }


def _show_tools(cli: Invocation, inspection: ServerInspection) -> None:
    """Print the tools of a server, and which are left out. Its descriptions are not trusted."""
    offered = inspection.catalogue.offered.values()
    rows = [
        make_row(tool.name, shorten(strip_control_characters(" ".join(tool.description.split())), MAX_LINE_CHARS))
        for tool in offered
    ]
    cli.out.show(translate("mcp.tools", version=inspection.version, tools=count_things("tool", len(rows))))
    if rows:
        cli.out.show(FittedTable(TOOL_COLUMNS, rows))
    _note_left_out(cli, inspection)


def _note_left_out(cli: Invocation, inspection: ServerInspection) -> None:
    for left in inspection.catalogue.left_out:
        note = translate("mcp.left_out", name=left.name, why=left.why)
        cli.progress.note(strip_control_characters(note), style="yellow")


async def mcp_add(
    cli: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the server; its tools are named after it.")],
    words: Annotated[
        TextList, typer.Argument(metavar="URL|COMMAND", help="The URL; or, after `--`, the program to start.")
    ] = None,
    *,
    env: Annotated[
        TextList,
        typer.Option("--env", metavar="K=V", help="Variable, repeatable; K alone copies yours."),
    ] = None,
    header: Annotated[
        TextList,
        typer.Option("--header", metavar="K=V", help="HTTP header, like Authorization='Bearer ${TOKEN}'."),
    ] = None,
    read_only: Annotated[
        TextList, typer.Option("--read-only", metavar="TOOL", help="Mark a tool as read-only. Repeatable.")
    ] = None,
    cwd: Annotated[str, typer.Option("--cwd", metavar="PATH", help="Working folder; `.` is the workspace.")] = "",
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="Timeout of a call. [default: 120]")
    ] = None,
    start_timeout: Annotated[
        float | None, typer.Option("--start-timeout", metavar="SECONDS", help="Timeout of its start.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Add the server even if it does not start.")] = False,
) -> Exit:
    """Check an MCP server and add it to your settings.

    The server is started once and its tools are shown. Put the command of a program after `--`.

    Examples:
      greenroom mcp add time -- uvx mcp-server-time
      greenroom mcp add docs https://example.com/mcp --header 'X-Key=${DOCS_KEY}'

    Exit codes: 0; 2; 3 the server does not start, or a problem with the settings.
    """
    new_server = NewServer(
        name=name.strip(),
        words=tuple(words or ()),
        env=tuple(env or ()),
        headers=tuple(header or ()),
        read_only=tuple(read_only or ()),
        cwd=cwd,
        timeout=timeout,
        start_timeout=start_timeout,
    )
    return await _add_server(cli, new_server, force=force)


async def _add_server(cli: Invocation, new_server: NewServer, *, force: bool) -> Exit:
    new_entry, file, name = new_server.build(), UserSettingsFile(user_file(os.environ)), new_server.name
    if name in _read_settings(cli).mcp:
        hint = translate("mcp.remove_first", command=render_command(cli, "mcp", "remove", name))
        raise make_refusal("exists", translate("mcp.server_exists", name=name), hint)
    file.check(name, new_server.table)
    cli.out.begin(name=name)
    inspection: ServerInspection | None = None
    try:
        inspection = await _inspect(cli, new_entry)
    except WorldFault as fault:
        if not force:
            raise WorldFault("mcp.not_added", fault=fault) from None
        cli.progress.note(str(fault), style="red")
    file.add(name, new_server.table)
    if inspection is not None:
        open_listings().save(new_entry, inspection.catalogue.listed)
    cli.out.show(translate("mcp.added", name=name, path=file.path))
    if any(entry.server.name == name for entry in _list_servers(cli).entries if not entry.is_own):
        cli.progress.note(translate("mcp.yours_is_used"), style="yellow")
    if inspection is None:
        check = render_command(cli, "mcp", "check", shlex.quote(name))
        cli.progress.note(translate("mcp.check_first", command=check), style="yellow")
        return cli.out.result("added", Exit.DONE, file=str(file.path), works=False)
    _show_tools(cli, inspection)
    cli.progress.note(f"\n{translate('mcp.how_to_use')}")
    return cli.out.result("added", Exit.DONE, file=str(file.path), works=True, **_inspection_fields(inspection))


async def mcp_remove(cli: Invocation, name: ServerName) -> Exit:
    """Remove one of your MCP servers.

    It is removed from your settings. A server of the project is removed in its .mcp.json.

    Examples:
      greenroom mcp remove time
      greenroom mcp remove docs

    Exit codes: 0; 2; 3.
    """
    name = name.strip()
    entry = _list_servers(cli).get(name)
    if not entry.is_own:
        hint = translate("mcp.remove_from_project_file")
        raise make_refusal("not_yours", translate("mcp.server_of_project", name=name), hint)
    file = UserSettingsFile(user_file(os.environ))
    file.remove(name)
    open_listings().forget(entry)
    cli.out.begin(name=name)
    cli.out.show(translate("mcp.removed", name=name, path=file.path))
    return cli.out.result("removed", Exit.DONE, file=str(file.path))
