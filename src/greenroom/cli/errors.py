"""The one place where an error becomes a sentence for a person, and fields for a program."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Final, TextIO, cast, get_args

import typer

from greenroom.cli.exit_codes import Exit, of_error
from greenroom.cli.setup import FORMAT, Format
from greenroom.core.base.errors import Bug, GreenroomError, Refused, WorldFault
from greenroom.core.base.text import UNSEEN, seen

VERSION: Final = 1
"""Of the schema. Fields may be added without a new one; a field at its default is left out, as in the log."""

Json = Mapping[str, object]


def line(fields: Json) -> str:
    """One line of JSON; text stays readable. What a terminal obeys is spelt out: the same to a program."""
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return UNSEEN.sub(lambda sign: json.dumps(sign[0])[1:-1], text)


def init(**fields: object) -> Json:
    """The first line of a stream."""
    return {"type": "init", "schema_version": VERSION, **fields}


def result(status: str, code: int, /, **fields: object) -> Json:
    """The last line of a stream, and the one object of `--output-format json`."""
    return {"type": "result", "status": status, "exit_code": int(code), **fields}


def write(stream: TextIO, fields: Json) -> None:
    stream.write(line(fields) + "\n")
    stream.flush()


PYDANTIC: Final = "Value error, "
"""How pydantic, with which typer checks what was typed, begins when the sentence is not its own."""


class Unheard(WorldFault):
    """What was to be said on stdout could not be written there."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"The answer cannot be written to stdout ({error.strerror or error}). What was done is done.")


def explain(error: BaseException) -> str:
    """What happened and what to do now."""
    if isinstance(error, GreenroomError) and not isinstance(error, Bug):
        return str(error)
    if isinstance(error, TimeoutError):
        return (
            "The process that runs the team did not answer in time. Is it stopped or very busy? What you asked for "
            "waits in the team's inbox and is done when somebody runs it again."
        )
    if isinstance(error, OSError):
        return f"The system said no: {error}."
    what = str(error) or "no words"
    return (
        f"Something broke that should not: {type(error).__name__}: {what}. This is a bug in Greenroom; -v shows where."
    )


def fields(error: BaseException) -> Json:
    """The same for a program: what, and where they are known by themselves, what to do and a code."""
    if isinstance(error, Refused):
        no = error.rejected
        return {"error": no.why, **({"hint": no.hint} if no.hint else {}), "code": no.code}
    return {"error": explain(error)}


def report(error: BaseException, *, verbose: bool = False) -> Exit:
    """Say it on stderr; with `-v` after its traceback. Returns the exit code."""
    if verbose:
        traceback.print_exception(error)
    mark = typer.style("Error:", fg="red", bold=True) if sys.stderr.isatty() else "Error:"
    typer.echo(f"{mark} {seen(explain(error))}", err=True)
    return of_error(error)


def usage(error: typer.TyperException) -> Json:
    """An option or argument that cannot be: say how it is meant. Returns the fields for a program."""
    error.message = error.message.removeprefix(PYDANTIC)
    show = getattr(error, "show", None)
    if callable(show):
        show()
    else:
        typer.echo(f"Error: {error.format_message()}", err=True)
    context = getattr(error, "ctx", None)
    hint = f"`{context.command_path if context else 'greenroom'} --help` says what is known."
    return {"error": error.format_message(), "hint": hint, "code": "usage"}


def told(output_format: Format, code: Exit, error: Json) -> Exit:
    """A program that asked for JSON gets it, also when there was nothing that could be run."""
    if output_format == "stream-json":
        write(sys.stdout, init())
    if output_format != "text":
        write(sys.stdout, result("error", code, **error))
    return code


def format_of(words: Sequence[str]) -> Format:
    """The output format as far as it was said, wherever it stands on a line that may be wrong in other ways."""
    found = "text"
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == FORMAT:
            found = value if equals else "".join(words[place + 1 : place + 2])
    return cast("Format", found) if found in get_args(Format) else "text"
