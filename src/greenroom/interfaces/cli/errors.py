"""The one place where an error becomes a sentence for a person. A traceback is only for `-v`."""

from __future__ import annotations

import sys
import traceback

import typer

from greenroom.core.base.errors import Bug, GreenroomError
from greenroom.interfaces.cli.exits import Exit, of_error


def explain(error: BaseException) -> str:
    """What happened and what to do now."""
    if isinstance(error, GreenroomError) and not isinstance(error, Bug):
        return str(error)
    if isinstance(error, TimeoutError):
        return "The process that runs the team did not answer in time. Is it stopped or very busy? Try again."
    if isinstance(error, OSError):
        return f"The system said no: {error}."
    what = str(error) or "no words"
    return (
        f"Something broke that should not: {type(error).__name__}: {what}. This is a bug in Greenroom; -v shows where."
    )


def report(error: BaseException, *, verbose: bool = False) -> Exit:
    """Say it on stderr; with `-v` after its traceback. Returns the exit code."""
    if verbose:
        traceback.print_exception(error)
    mark = typer.style("Error:", fg="red", bold=True) if sys.stderr.isatty() else "Error:"
    typer.echo(f"{mark} {explain(error)}", err=True)
    return of_error(error)


def usage(error: typer.TyperException) -> Exit:
    """An option or argument that cannot be: say how it is meant."""
    show = getattr(error, "show", None)
    if callable(show):
        show()
    else:
        typer.echo(f"Error: {error.format_message()}", err=True)
    return Exit.USAGE
