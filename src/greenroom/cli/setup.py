"""The options that every command has: where the home is, how to print, how much to say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal, cast

import typer

Format = Literal["text", "json", "stream-json"]
FORMAT: Final = "--output-format"
Access = Literal["make", "change", "look", "none"]
"""What a command may do to the home: make one, change what is there, or only look (see `Runtime.open`), or nothing."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The shared options, and which command was typed with which access; `home` is None when none was named."""

    home: Path | None = None
    output_format: Format = "text"
    quiet: bool = False
    verbose: bool = False
    command: str = ""
    access: Access = "none"


def setup_of(context: typer.Context) -> Setup:
    found = context.find_root().obj
    return found if isinstance(found, Setup) else Setup()


def _remember(context: typer.Context, param: typer.CallbackParam, value: object) -> None:
    """An option given before or after the command's name counts the same."""
    if value is None or value is False:
        return
    setup = setup_of(context)
    if param.name == "home":
        if not str(value).strip():
            raise typer.BadParameter("it is empty. Name a folder, or leave the option out.")
        setup = replace(setup, home=Path(str(value)))
    elif param.name == "output_format":
        setup = replace(setup, output_format=cast("Format", value))
    else:
        setup = replace(
            setup, quiet=setup.quiet or param.name == "quiet", verbose=setup.verbose or param.name == "verbose"
        )
    context.find_root().obj = setup


def shared(
    home: Annotated[
        str | None,
        typer.Option(
            "--home",
            metavar="PATH",
            help="Where the log is. [default: $GREENROOM_HOME, else your data folder]",
            callback=_remember,
            expose_value=False,
            show_default=False,
        ),
    ] = None,
    output_format: Annotated[
        Format | None,
        typer.Option(
            FORMAT,
            metavar="FORMAT",
            help="text, json (one object) or stream-json (a line per event). [default: text]",
            callback=_remember,
            expose_value=False,
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="No progress, only the answer.", callback=_remember, expose_value=False),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Every event; tracebacks.", callback=_remember, expose_value=False),
    ] = False,
) -> None:
    """The options that every command has."""
