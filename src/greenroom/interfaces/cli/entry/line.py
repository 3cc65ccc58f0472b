"""The command line: its options, its table of commands, and how it ends. `--help` imports only this."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Annotated, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from greenroom.core.base.errors import GreenroomError
from greenroom.interfaces.cli.asked.setup import Setup
from greenroom.interfaces.cli.asked.table import ENTRIES, VERSION
from greenroom.interfaces.cli.display.errors import Unheard, fields, format_of, report, told, usage
from greenroom.interfaces.cli.entry.lazy import SETTINGS, Sections, add, load_command, options
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.streams import hush

HELP: Final = """A team of AI agents that you can trust with real work.

An ID is the beginning of a team's id, `last` for the newest team, or TEAM/TASK."""
EPILOG: Final = "Exit codes: 0 done, 1 failed, 2 usage, 3 config or store, 4 provider, 5 limit, 6 waiting for a person."


def _say_version(wanted: bool) -> None:
    if wanted:
        load_command(VERSION)()
        raise typer.Exit


def _root(
    _: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """The options of the command itself."""


def command() -> TyperGroup:
    """The whole command line; of its commands only names and help."""
    app = typer.Typer(cls=Sections, rich_markup_mode=None, no_args_is_help=True, context_settings=SETTINGS)
    app.callback(help=HELP, epilog=EPILOG)(_root)
    group = get_command(app)
    if not isinstance(group, TyperGroup):
        raise TypeError("typer made no group")
    group.params[:0] = options()
    for entry in ENTRIES:
        add(group, entry)
    return group


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say; returns the exit code."""
    try:
        return _run(arguments)
    except GreenroomError as error:
        return told(format_of(arguments), report(error, verbose=_verbose(arguments)), fields(error))
    except OSError as error:
        # Only what is written to stdout gets here: everything else is called by its name before.
        hush(sys.stdout)
        return Exit.BROKEN_PIPE if isinstance(error, BrokenPipeError) else report(Unheard(error))


def _run(arguments: Sequence[str]) -> int:
    try:
        code = command().main(list(arguments), prog_name="greenroom", standalone_mode=False, obj=Setup())
    except typer.TyperException as error:
        return told(format_of(arguments), Exit.USAGE, usage(error))
    except (typer.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    return code if isinstance(code, int) else Exit.DONE


def _verbose(arguments: Sequence[str]) -> bool:
    return "-v" in arguments or "--verbose" in arguments


def _bug(_: type[BaseException], error: BaseException, __: TracebackType | None) -> None:
    """What nobody expected: one sentence, and the traceback for those who ask for it. Python then ends with code 1."""
    report(error, verbose=_verbose(sys.argv[1:]))


def start() -> int:
    """The whole process; returns its exit code."""
    sys.excepthook = _bug
    return run(sys.argv[1:])
