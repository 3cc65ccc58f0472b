"""What a person asks: the words they typed, and what stands on stdin."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

import typer

STDIN: Final = "-"
MOST: Final = 1_000_000
"""Bytes that are read from stdin."""

PATIENCE: Final = 2.0
"""Seconds without a byte from stdin until it is said that we wait for it."""


class Asked(NamedTuple):
    """What was said, and what was piped in beside it."""

    text: str
    context: str = ""


def question(words: Sequence[str], what: str = "question") -> Asked:
    """The question with its context; `BadParameter` when there is none."""
    if list(words) == [STDIN] or (not words and not sys.stdin.isatty()):
        return Asked(said([from_stdin(what)], what))
    return Asked(said(words, what), piped())


def said(words: Sequence[str], what: str = "question") -> str:
    """What was typed, as one text; `BadParameter` when there is none."""
    text = " ".join(words)
    if not text.strip():
        raise typer.BadParameter(f"There is no {what}. Type it behind the command, or pipe it in.")
    if not readable(text):
        raise typer.BadParameter(f"The {what} holds bytes that are no text. Write it in UTF-8.")
    return text.strip("\n")


def from_stdin(what: str = "question") -> str:
    """All of stdin."""
    if sys.stdin.isatty():
        typer.echo(f"Type your {what}; Ctrl-D on a line of its own ends it.", err=True)
    return _text(sys.stdin.buffer.read(MOST + 1))


def piped() -> str:
    """What was piped in beside the words; nothing where stdin is a terminal, closed, or no place for data."""
    try:
        number = sys.stdin.fileno()
        mode = os.fstat(number).st_mode
    except (OSError, ValueError):
        return ""
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return ""
    if not select.select([number], (), (), PATIENCE)[0] and sys.stderr.isatty():
        typer.echo("Waiting for what is piped in. If nothing comes from there, add `< /dev/null`.", err=True)
    return _text(sys.stdin.buffer.read(MOST + 1)).strip("\n")


def _text(data: bytes) -> str:
    if len(data) > MOST:
        raise typer.BadParameter("More than 1 MB came on stdin. Give a part of it, for instance with `head -c 500000`.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"What came on stdin is not UTF-8: byte {error.start} cannot be read.") from None
    if "\0" in text:
        raise typer.BadParameter("What came on stdin is no text: there is a NUL byte in it.")
    return text


def readable(text: str) -> bool:
    """Whether it can be written down: a shell may hand over bytes that are no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
