"""Help screens: the parts of a command's docstring, and how they are printed.

The docstring of a command has its first sentence, details, a section `Examples:` and a line `Exit codes:`.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import typer
from typer._click import Context, HelpFormatter  # typer 0.29 carries its own copy of click

from greenroom.cli.exit_codes import EXIT_MEANINGS, Exit

TYPE_SUFFIX: Final = re.compile(r" <(?:str|list\[str\])>$")
"""The Python type that typer appends to the name of a text parameter."""

TYPER_NOTES: Final = re.compile(r"  \[(?:required|x>=\d+)\]$|; [^;\]]*x[<>]=[^\]]*(?=\]$)")
"""What typer appends to the meaning of a parameter: that it is required, which the usage shows, and its range."""


class CommandHelp(NamedTuple):
    """The help of a command: what it does, commands to type, and its exit codes with their meanings."""

    text: str
    examples: tuple[str, ...]
    exit_codes: tuple[tuple[Exit, str], ...]


def parse_help(docstring: str) -> CommandHelp:
    """Split the docstring of a command. A code without a meaning gets that of `EXIT_MEANINGS`."""
    body, _, codes = inspect.cleandoc(docstring).partition("\nExit codes: ")
    text, _, examples = body.partition("\nExamples:\n")
    entries = " ".join(codes.rstrip(".\n").split()).split("; ") if codes else []
    pairs = ((Exit(int(code)), meaning) for code, _, meaning in (entry.partition(" ") for entry in entries))
    return CommandHelp(
        text=text.strip(),
        examples=tuple(line.strip() for line in examples.splitlines() if line.strip()),
        exit_codes=tuple((code, meaning or EXIT_MEANINGS[code]) for code, meaning in pairs),
    )


def bold(text: str) -> str:
    """Return the text in bold, if stdout is a terminal that can show it."""
    has_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return typer.style(text, bold=True) if has_colour else text


class PlainFormatter(HelpFormatter):
    """Help without Python types and other notes of typer."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage. An argument without brackets is required."""
        super().write_usage(prog, args.replace("{", "").replace("}", ""), prefix)

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names and their meanings in two columns. A name that is too long gets its own line."""
        shown_rows = [
            (TYPE_SUFFIX.sub(" TEXT" if name.startswith("-") else "", name), TYPER_NOTES.sub("", meaning))
            for name, meaning in rows
        ]
        super().write_dl(shown_rows, col_max, col_spacing)


class PlainContext(Context):
    """The context of a command that uses `PlainFormatter`."""

    formatter_class = PlainFormatter


def write_body(formatter: HelpFormatter, text: str) -> None:
    """Write the paragraphs below the usage."""
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(text)


def write_list(formatter: HelpFormatter, title: str, rows: Iterable[tuple[str, str]]) -> None:
    """Write a titled list in two columns; nothing if it is empty."""
    listed = list(rows)
    if listed:
        with formatter.section(bold(title)):
            formatter.write_dl(listed)


def write_examples(formatter: HelpFormatter, examples: Iterable[str]) -> None:
    """Write commands as they are: a line to copy is not wrapped."""
    with formatter.section(bold("Examples")):
        formatter.write("".join(f"{'':{formatter.current_indent}}{line}\n" for line in examples))


def write_exit_codes(formatter: HelpFormatter, codes: Iterable[tuple[Exit, str]]) -> None:
    """Write exit codes, one per line."""
    write_list(formatter, "Exit codes", ((str(int(code)), meaning) for code, meaning in codes))
