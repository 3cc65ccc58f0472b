"""How to type what is about what agents may have and do: the families `tools` and `permissions`."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from greenroom.interfaces.cli.asked.allowing import (
    PermissionsAdd,
    PermissionsList,
    PermissionsRemove,
    ToolsList,
    ToolsShow,
)
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
