"""Asking a person at a terminal, on stderr: stdout is for answers. Ctrl-C and Ctrl-D end it cleanly."""

from __future__ import annotations

import getpass
import select
import shutil
import signal
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import typer
from rich.cells import cell_len

from greenroom.core.base.text import seen
from greenroom.interfaces.cli.display.echo import forget_typed

QUOTED: Final = "  | "
"""How lines begin that an agent has written."""


MOMENT: Final = 0.5
"""Seconds after which somebody who waits for a line looks whether a signal has come."""


class Gone(Exception):
    """The person does not want to go on."""


def in_words(question: str) -> str:
    """A question broken between words, where the terminal would break it within one. What is quoted stays as it is."""
    wide = shutil.get_terminal_size().columns
    return "\n".join(one if one.startswith(QUOTED) else _broken(one, wide) for one in question.split("\n"))


def _broken(line: str, wide: int) -> str:
    if cell_len(line) <= wide:
        return line
    lines = textwrap.wrap(line, wide, break_long_words=False, break_on_hyphens=False, drop_whitespace=True)
    return "\n".join(lines) + line[len(line.rstrip()) :]


@contextmanager
def listening() -> Iterator[None]:
    """While somebody types, a signal must not end the process at once: the terminal would stay without an echo."""
    known = [(one, signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM)]
    for one, _ in known:
        signal.signal(one, signal.default_int_handler)
    try:
        yield
    except (KeyboardInterrupt, EOFError):
        raise Gone from None
    finally:
        for one, handler in known:
            signal.signal(one, handler)


def _typed() -> str:
    """A line. A signal that comes just before one begins to read interrupts nothing, and would be heard with the next
    line only."""
    while not select.select([sys.stdin], [], [], MOMENT)[0]:
        pass
    return sys.stdin.readline()


class Person:
    """Somebody at a terminal. Every question says what an empty answer means."""

    def answer(self, question: str, otherwise: str = "") -> str:
        """A line; an empty one is what stands in the brackets."""
        while True:
            with listening():
                typer.echo(seen(f"{question} [{otherwise}]: " if otherwise else f"{question}: "), err=True, nl=False)
                line = _typed()
            if not line:
                raise Gone
            if line.strip() or otherwise:
                return line.strip() or otherwise

    def line(self, question: str) -> str:
        """A line, whatever is on it."""
        try:
            with listening():
                forget_typed()
                typer.echo(in_words(seen(question)), err=True, nl=False)
                line = _typed()
        except Gone:
            line = ""
        if not line:
            typer.echo("", err=True)  # what comes now does not stand behind the question
            raise Gone
        return line

    def secret(self, question: str) -> str:
        """A line that is not shown while it is typed."""
        while True:
            with listening():
                line = getpass.getpass(f"{question}: ", stream=sys.stderr)
            if line.strip():
                return line.strip()

    def choose(self, question: str, rows: Sequence[str]) -> int:
        """One of several, by its number; the first for an empty answer."""
        typer.echo(seen(question), err=True)
        for number, one in enumerate(rows, start=1):
            typer.echo(seen(f"  {number:>2}  {one}"), err=True)
        while True:
            said = self.answer("Number", "1")
            if said.isdecimal() and 1 <= int(said) <= len(rows):
                return int(said) - 1
            typer.echo(f"{said!r} is none of 1 to {len(rows)}.", err=True)

    def agrees(self, question: str) -> bool:
        """Whether they say yes; an empty answer is a no."""
        return self.answer(f"{question} yes or no", "no").lower() in ("y", "yes")
