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


def forget_typed() -> None:
    """Before a question: what was typed when nobody had asked it yet is no answer to it."""
    with suppress(termios.error, OSError, ValueError):  # stdin is no terminal
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


@contextmanager
def unechoed() -> Iterator[None]:
    """No echo meanwhile. Where stdin is no terminal there is none anyway."""
    try:
        number = sys.stdin.fileno()
        before = termios.tcgetattr(number)
    except (termios.error, OSError, ValueError):
        yield
        return
    silent = [*before[:LOCAL], before[LOCAL] & ~termios.ECHO, *before[LOCAL + 1 :]]
    termios.tcsetattr(number, termios.TCSANOW, silent)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal may have gone
            termios.tcsetattr(number, termios.TCSANOW, before)


INPUT, LOCAL, SIGNS = 0, 3, 6
"""Where the attributes of a terminal have what comes in, what is about lines and echoing, and its special signs."""

ENTER: Final = frozenset("\r\n")
RUBOUT: Final = frozenset("\x7f\b")
FORGET: Final = frozenset("\x15\x03")
WORD: Final = "\x17"
STEERING: Final = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z~]|O[A-Z]|.)?", re.DOTALL)
"""Arrows and the like: here they mean nothing."""

PIECE: Final = 4096
LONGEST: Final = 4_000
"""Characters of a line."""


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
            else:
                self.text = _with(self.text, sign)[:LONGEST]
        return [one for one in done if one]


def _with(text: str, sign: str) -> str:
    if sign in RUBOUT:
        return text[:-1]
    if sign in FORGET:
        return ""
    if sign == WORD:
        return text.rstrip().rpartition(" ")[0]
    return f"{text}{sign}" if sign.isprintable() else text


@contextmanager
def watched(keys: Callable[[bytes], None]) -> Iterator[None]:
    """Hand over what is typed, key by key and unechoed. Ctrl-C stays a signal. Where stdin is no terminal: nothing."""
    try:
        number = sys.stdin.fileno()
        before = termios.tcgetattr(number)
    except (termios.error, OSError, ValueError):
        yield
        return
    alert = [*before]
    alert[LOCAL] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(number, termios.TCSANOW, alert)
    loop = asyncio.get_running_loop()
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
    except OSError:  # it has gone: whoever ends us because of that is on the way
        return b""


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


def yes_or_no(tip: str, *, default: bool) -> str:
    """A question with its answers; those to a long one stand on a line of their own."""
    gap = "\n" if "\n" in tip else " "
    return f"{tip}{gap}[{'Y/n' if default else 'y/N'}] "
