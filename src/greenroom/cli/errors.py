"""Errors as sentences for people and as JSON fields for programs."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Final, TextIO, cast, get_args

import typer
from typer._click.exceptions import UsageError

from greenroom.app.messages import translate
from greenroom.cli.exit_codes import Exit, exit_for_error
from greenroom.cli.setup import FORMAT_OPTION, Format
from greenroom.core.base.errors import Bug, GreenroomError, RefusedError, WorldFault
from greenroom.core.base.text import CONTROL_CHARACTERS, remove_control_characters

SCHEMA_VERSION: Final = 1
"""Version of the JSON output. New fields do not change it; fields with their default value are left out."""

Json = Mapping[str, object]


def encode_line(fields: Json) -> str:
    """Encode one line of JSON. Non-ASCII text stays readable; terminal control characters are escaped."""
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return CONTROL_CHARACTERS.sub(lambda sign: json.dumps(sign[0])[1:-1], text)


def init_fields(**fields: object) -> Json:
    """Return the first line of a stream."""
    return {"type": "init", "schema_version": SCHEMA_VERSION, **fields}


def result_fields(status: str, code: int, /, **fields: object) -> Json:
    """Return the last line of a stream, which is also the object of `--output-format json`."""
    return {"type": "result", "status": status, "exit_code": int(code), **fields}


def write_line(stream: TextIO, fields: Json) -> None:
    stream.write(encode_line(fields) + "\n")
    stream.flush()


PYDANTIC_PREFIX: Final = "Value error, "
"""Prefix that pydantic adds to a `ValueError` of ours; typer uses pydantic to validate arguments."""


class StdoutFault(WorldFault):
    """The result could not be written to stdout."""

    def __init__(self, error: OSError) -> None:
        super().__init__("errors.stdout", why=error.strerror or error)


def explain(error: BaseException) -> str:
    """Return a sentence that says what happened and what to do."""
    if isinstance(error, GreenroomError) and not isinstance(error, Bug):
        return str(error)
    if isinstance(error, TimeoutError):
        return translate("errors.team_process_timeout")
    if isinstance(error, OSError):
        return translate("errors.system_refused", error=error)
    what = str(error) or translate("errors.no_message")
    return translate("errors.internal_error", name=type(error).__name__, what=what)


def error_fields(error: BaseException) -> Json:
    """Return the error as JSON fields: the message and, if known, a hint and a code."""
    if isinstance(error, RefusedError):
        return {"error": error.why, **({"hint": error.hint} if error.hint else {}), "code": error.rejection.code}
    code = error.code if isinstance(error, GreenroomError) else ""
    return {"error": explain(error), **({"code": code} if code else {})}


def report_error(error: BaseException, *, verbose: bool = False) -> Exit:
    """Print the error on stderr, with `verbose` after its traceback. Return the exit code."""
    if verbose:
        traceback.print_exception(error)
    mark = typer.style("Error:", fg="red", bold=True) if sys.stderr.isatty() else "Error:"
    typer.echo(f"{mark} {remove_control_characters(explain(error))}", err=True)
    return exit_for_error(error)


def report_usage(error: typer.TyperException) -> Json:
    """Print a usage error on stderr. Return it as JSON fields."""
    error.message = error.message.removeprefix(PYDANTIC_PREFIX)
    if isinstance(error, typer.BadParameter) and error.param is None and error.param_hint is None:
        error = UsageError(error.message, error.ctx)  # without the prefix "Invalid value"
    show = getattr(error, "show", None)
    if callable(show):
        show()
    else:
        typer.echo(f"Error: {error.format_message()}", err=True)
    context = getattr(error, "ctx", None)
    hint = translate("errors.help_lists_options", command_path=context.command_path if context else "greenroom")
    return {"error": error.format_message(), "hint": hint, "code": "usage"}


def print_error(output_format: Format, code: Exit, error: Json) -> Exit:
    """Print the error as JSON on stdout if that format was requested. Return the code."""
    if output_format == "stream-json":
        write_line(sys.stdout, init_fields())
    if output_format != "text":
        write_line(sys.stdout, result_fields("error", code, **error))
    return code


def find_output_format(words: Sequence[str]) -> Format:
    """Return the output format from arguments that may be invalid otherwise; "text" if there is none."""
    output_format = "text"
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == FORMAT_OPTION:
            output_format = value if equals else "".join(words[index + 1 : index + 2])
    return cast("Format", output_format) if output_format in get_args(Format) else "text"
