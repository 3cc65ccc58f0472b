"""Asking a person at a terminal, on stderr, and hearing what they type while something else is shown."""

from __future__ import annotations

import asyncio
import codecs
import getpass
import os
import re
import select
import shutil
import signal
import sys
import termios
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import typer
from rich.cells import cell_len

from greenroom.core.base.text import seen

PROMPT: Final = "› "
QUICK: Final = 2.0  # seconds in which a second Ctrl-C leaves
LOCAL: Final = 3  # where the attributes of a terminal have what is about lines and echoing
ENTER: Final = frozenset("\r\n")
RUBOUT: Final = frozenset("\x7f\b")
FORGET: Final = frozenset("\x15\x03")
WORD: Final = "\x17"
STEERING: Final = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z~]|O[A-Z]|.)?", re.DOTALL)
"""Arrows and the like: here they mean nothing."""

PIECE: Final = 4096
LONGEST: Final = 4_000  # characters of a line
QUOTED: Final = "  | "  # how lines begin that an agent has written
MOMENT: Final = 0.5  # seconds after which a wait for a line looks whether a signal has come


def forget_typed() -> None:
    """Before a question: what was typed when it was not asked yet is no answer to it."""
    with suppress(termios.error, OSError, ValueError):  # stdin is no terminal
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


@contextmanager
def unechoed(keys: Callable[[bytes], None] | None = None) -> Iterator[None]:
    """Echo nothing meanwhile; `keys` gets what is typed, key by key. Ctrl-C stays a signal. Where stdin is no terminal
    nothing happens."""
    try:
        number = sys.stdin.fileno()
        before = termios.tcgetattr(number)
    except (termios.error, OSError, ValueError):
        yield
        return
    changed, loop = [*before], asyncio.get_running_loop()
    changed[LOCAL] &= ~(termios.ECHO | (termios.ICANON if keys is not None else 0))
    termios.tcsetattr(number, termios.TCSANOW, changed)
    if keys is not None:
        loop.add_reader(number, lambda: keys(_read(number)))
    try:
        yield
    finally:
        loop.remove_reader(number)
        with suppress(termios.error):  # the terminal may have gone
            termios.tcsetattr(number, termios.TCSANOW, before)


def _read(number: int) -> bytes:
    try:
        return os.read(number, PIECE)
    except OSError:  # the terminal has gone: the signal that ends us is on the way
        return b""


class TypedLine:
    """What was typed of a line so far. It outlives a question in between."""

    def __init__(self) -> None:
        self.text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")

    def take(self, data: bytes) -> list[str]:
        """More keys; returns the lines that are done with them."""
        done = list[str]()
        for sign in STEERING.sub("", self._decoder.decode(data)):
            if sign in ENTER:
                done.append(self.text.strip())
                self.text = ""
            elif sign in RUBOUT:
                self.text = self.text[:-1]
            elif sign in FORGET:
                self.text = ""
            elif sign == WORD:
                self.text = self.text.rstrip().rpartition(" ")[0]
            elif sign.isprintable():
                self.text = f"{self.text}{sign}"[:LONGEST]
        return [line for line in done if line]


class Gone(Exception):
    """The person does not want to go on."""


def in_words(question: str) -> str:
    """A question broken between words, where the terminal would break it within one. What is quoted stays as it is."""
    wide = shutil.get_terminal_size().columns
    lines = question.split("\n")
    return "\n".join(
        line if line.startswith(QUOTED) or cell_len(line) <= wide else _broken(line, wide) for line in lines
    )


def _broken(line: str, wide: int) -> str:
    lines = textwrap.wrap(line, wide, break_long_words=False, break_on_hyphens=False, drop_whitespace=True)
    return "\n".join(lines) + line[len(line.rstrip()) :]


@contextmanager
def listening() -> Iterator[None]:
    """While a person types, a signal must not end the process at once: the terminal would stay without an echo."""
    known = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    for number, _ in known:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    except (KeyboardInterrupt, EOFError):
        raise Gone from None
    finally:
        for number, handler in known:
            signal.signal(number, handler)


def ask_line(question: str) -> str:
    """A line, as it is typed; `Gone` when the person leaves."""
    line = ""
    with suppress(Gone), listening():
        forget_typed()
        typer.echo(in_words(seen(question)), err=True, nl=False)
        # A signal that comes just before one begins to read interrupts nothing, and would be heard with the next line.
        while not select.select([sys.stdin], [], [], MOMENT)[0]:
            pass
        line = sys.stdin.readline()
    if not line:
        typer.echo("", err=True)  # what comes now does not stand behind the question
        raise Gone
    return line


def ask(question: str, default: str = "") -> str:
    """A line that is not empty; an empty one is the default, which stands in brackets."""
    tip = f"{question} [{default}]: " if default else f"{question}: "
    while not (line := ask_line(tip).strip() or default):
        pass
    return line


def ask_secret(question: str) -> str:
    """A line that is not shown while it is typed."""
    while True:
        with listening():
            line = getpass.getpass(f"{question}: ", stream=sys.stderr).strip()
        if line:
            return line


def choose(question: str, rows: Sequence[str]) -> int:
    """One of several, by its number; the first for an empty answer."""
    typer.echo(seen("\n".join((question, *(f"  {number:>2}  {row}" for number, row in enumerate(rows, 1))))), err=True)
    while True:
        said = ask("Number", "1")
        if said.isdecimal() and 1 <= int(said) <= len(rows):
            return int(said) - 1
        typer.echo(f"{said!r} is none of 1 to {len(rows)}.", err=True)


def confirm(question: str) -> bool:
    """Whether the person says yes; an empty line is a no. One who leaves stops the command."""
    try:
        while (word := ask_line(question).strip().lower()) not in ("", "n", "no"):
            if word in ("y", "yes"):
                return True
        return False
    except Gone:
        raise asyncio.CancelledError from None


def yes_or_no(tip: str, *, default: bool) -> str:
    """A question with its answers; those to a long one stand on a line of their own."""
    gap = "\n" if "\n" in tip else " "
    return f"{tip}{gap}[{'Y/n' if default else 'y/N'}] "
