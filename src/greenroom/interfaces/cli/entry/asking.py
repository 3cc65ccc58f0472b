"""What a person asks: the words they typed, or what stands on stdin."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

import typer

STDIN: Final = "-"


def question(words: Sequence[str]) -> str:
    """The question; `BadParameter` when there is none."""
    piped = not words and not sys.stdin.isatty()
    text = from_stdin() if piped or list(words) == [STDIN] else " ".join(words)
    if not text.strip():
        raise typer.BadParameter("There is no question. Type it behind the command, or pipe it in.")
    if not readable(text):
        raise typer.BadParameter("The question holds bytes that are no text. Write it in UTF-8.")
    return text.strip("\n")


def from_stdin() -> str:
    """All of stdin."""
    if sys.stdin.isatty():
        typer.echo("Type your question; Ctrl-D on a line of its own ends it.", err=True)
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"What came on stdin is not UTF-8: byte {error.start} cannot be read.") from None


def readable(text: str) -> bool:
    """Whether it can be written down: a shell may hand over bytes that are no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
