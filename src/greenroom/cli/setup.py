"""The options of every command: home, output format, verbosity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal, cast

import typer

from greenroom.app.messages import translate

Format = Literal["text", "json", "stream-json"]
FORMAT_OPTION: Final = "--output-format"
Access = Literal["make", "change", "act", "look", "none"]
"""What a command may do to the home: create it, change it, only read it (see `Runtime.open`), or nothing. With `act` it
changes files by what it reads there."""


@dataclass(frozen=True, slots=True)
class CommandSetup:
    """The shared options, the typed command and its access. `home` is None if --home was not given."""

    home: Path | None = None
    output_format: Format = "text"
    quiet: bool = False
    verbose: bool = False
    command: str = ""
    access: Access = "none"


def read_setup(context: typer.Context) -> CommandSetup:
    stored = context.find_root().obj
    return stored if isinstance(stored, CommandSetup) else CommandSetup()


def _remember(context: typer.Context, param: typer.CallbackParam, value: object) -> None:
    """Store a shared option, given before or after the command's name."""
    if value is None or value is False:
        return
    setup = read_setup(context)
    if param.name == "home":
        if not str(value).strip():
            raise typer.BadParameter(translate("options.home_empty"))
        setup = replace(setup, home=Path(str(value)))
    elif param.name == "output_format":
        setup = replace(setup, output_format=cast("Format", value))
    else:
        setup = replace(
            setup, quiet=setup.quiet or param.name == "quiet", verbose=setup.verbose or param.name == "verbose"
        )
    context.find_root().obj = setup


def declare_options(
    home: Annotated[
        str | None,
        typer.Option(
            "--home",
            metavar="PATH",
            help="Folder of the log; also $GREENROOM_HOME.",
            callback=_remember,
            expose_value=False,
            show_default=False,
        ),
    ] = None,
    output_format: Annotated[
        Format | None,
        typer.Option(
            FORMAT_OPTION,
            metavar="FORMAT",
            help="text (default), json or stream-json (JSON lines).",
            callback=_remember,
            expose_value=False,
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Print only the answer.", callback=_remember, expose_value=False),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Print events and tracebacks.", callback=_remember, expose_value=False),
    ] = False,
) -> None:
    """Declare the options of every command."""
