"""How to type what is about what agents may have and do: the families `tools`, `permissions`, `mcp`."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from greenroom.interfaces.cli.asked.allowing import (
    McpAdd,
    McpCheck,
    McpList,
    McpRemove,
    PermissionsAdd,
    PermissionsList,
    PermissionsRemove,
    ToolsList,
    ToolsRun,
    ToolsShow,
    Trust,
)
from greenroom.interfaces.cli.entry.asking import STDIN, from_stdin
from greenroom.interfaces.cli.entry.doing import do


def tools_list(context: typer.Context) -> int:
    """List the tools that agents can have in this folder, by group."""
    return do(context, ToolsList())


def tools_show(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TOOL", help="Its name, as `greenroom tools list` has it.")],
) -> int:
    """Show what models are told of a tool: description and parameters."""
    return do(context, ToolsShow(name=name.strip()))


def tools_run(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TOOL", help="Its name, as `greenroom tools list` has it.")],
    given: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Its parameters, as `tools show` has them.")
    ] = None,
    *,
    whole: Annotated[
        str,
        typer.Option("--json", metavar="OBJECT", help="All parameters in one JSON object; `-` reads it from stdin."),
    ] = "",
) -> int:
    """Call a tool yourself, in this workspace: you are not asked, but what your rules deny is denied."""
    text = from_stdin("object") if whole.strip() == STDIN else whole
    return do(context, ToolsRun(name=name.strip(), given=tuple(given or ()), whole=text))


def trust(
    context: typer.Context,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Agree without being asked.")] = False,
    only_list: Annotated[bool, typer.Option("--list", help="Only list it.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take back all that you agreed to here.")] = False,
) -> int:
    """Show the agents, tools, callbacks and servers that this workspace brings; none is used before you agree to it.

    You agree to what they are now. One that changes is asked about again. Exit code 6 when nobody can be asked.
    """
    if yes + only_list + revoke > 1:
        raise typer.BadParameter("--yes, --list and --revoke are three different things. Say one of them.")
    return do(context, Trust(yes=yes, only_list=only_list, revoke=revoke))


Rule: TypeAlias = Annotated[list[str], typer.Argument(metavar="RULE", help="For instance: allow command npm test")]
Everywhere: TypeAlias = Annotated[bool, typer.Option("--everywhere", help="Not only in this workspace.")]


def permissions_list(context: typer.Context) -> int:
    """List the rules that you have agreed to for good, and where each holds."""
    return do(context, PermissionsList())


def permissions_add(context: typer.Context, rule: Rule, *, everywhere: Everywhere = False) -> int:
    """Agree to a rule: allow, notify, ask or deny · command, line, path, host or tool · what."""
    return do(context, PermissionsAdd(rule=" ".join(rule), everywhere=everywhere))


def permissions_remove(context: typer.Context, rule: Rule, *, everywhere: Everywhere = False) -> int:
    """Agree to a rule no more."""
    return do(context, PermissionsRemove(rule=" ".join(rule), everywhere=everywhere))


ServerName: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="Its name, as `greenroom mcp list` has it.")]
NewName: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="What it is to be called: its tools are named after it.")
]
Words: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="URL|COMMAND", help="Its address; or, behind `--`, the program to start."),
]
Env: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="K=V", help="What a program is given; K alone: your variable. Again for more."),
]
Header: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="K=V", help="What an address is sent, like Authorization='Bearer ${TOKEN}'."),
]
ReadOnly: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--read-only", metavar="TOOL", help="A tool of which you say that it changes nothing."),
]
Timeout: TypeAlias = Annotated[
    float | None, typer.Option("--timeout", metavar="SECONDS", help="How long a call may take. [default: 120]")
]
StartTimeout: TypeAlias = Annotated[
    float | None, typer.Option("--start-timeout", metavar="SECONDS", help="How long its start may take.")
]


def mcp_add(
    context: typer.Context,
    name: NewName,
    words: Words = None,
    *,
    env: Env = None,
    header: Header = None,
    read_only: ReadOnly = None,
    cwd: Annotated[
        str, typer.Option("--cwd", metavar="PATH", help="Where a program begins; `.` is the workspace.")
    ] = "",
    timeout: Timeout = None,
    start_timeout: StartTimeout = None,
    force: Annotated[bool, typer.Option("--force", help="Add it although it does not work now.")] = False,
) -> int:
    """Start an MCP server, show its tools, and add it to your own settings. A program stands behind `--`."""
    order = McpAdd(
        name=name.strip(),
        words=tuple(words or ()),
        env=tuple(env or ()),
        headers=tuple(header or ()),
        read_only=tuple(read_only or ()),
        cwd=cwd,
        timeout=timeout,
        start_timeout=start_timeout,
        force=force,
    )
    return do(context, order)


def mcp_list(context: typer.Context) -> int:
    """List the MCP servers here: your own, and those that the project brings in .mcp.json. None is started."""
    return do(context, McpList())


def mcp_remove(context: typer.Context, name: ServerName) -> int:
    """Take one of your own MCP servers out of your settings."""
    return do(context, McpRemove(name=name.strip()))


def mcp_check(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Only this one.")] = "",
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Agree to tools that have changed.")] = False,
) -> int:
    """Start MCP servers; say what they have, and what differs from what you agreed to. Exit code 1 if one is wrong."""
    return do(context, McpCheck(name=name.strip(), yes=yes))
