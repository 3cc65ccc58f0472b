"""`greenroom help`: the daily commands, every command, or the help of one."""

from __future__ import annotations

from typing import Annotated

import typer

from greenroom.app.messages import translate
from greenroom.cli.app import RootGroup, run
from greenroom.cli.exit_codes import Exit


def show_help(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="A command, like `run` or `org start`.")
    ] = None,
    *,
    show_all: Annotated[bool, typer.Option("--all", help="List every command, the options and exit codes.")] = False,
) -> int:
    """Show the help of a command, or every command.

    Without a command it shows the daily ones, like `greenroom --help`.

    Examples:
      greenroom help --all
      greenroom help org start

    Exit codes: 0; 2.
    """
    if words and show_all:
        raise typer.BadParameter(translate("org.help_all"))
    root = context.find_root()
    if not show_all or not isinstance(root.command, RootGroup):
        return run([*(words or ()), "--help"])
    formatter = root.make_formatter()
    root.command.format_all(root, formatter)
    typer.echo(formatter.getvalue(), nl=False)
    return Exit.DONE
