"""Ask a person at a terminal, on stderr, and read what they type while something else is shown."""

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

from greenroom.app.messages import translate
from greenroom.core.base.text import remove_control_characters

PROMPT: Final = "› "
DOUBLE_INTERRUPT_S: Final = 2.0  # seconds within which a second Ctrl-C leaves
LOCAL_FLAGS: Final = 3  # index of the local flags (lines, echo) in terminal attributes
ENTER_KEYS: Final = frozenset("\r\n")
BACKSPACE_KEYS: Final = frozenset("\x7f\b")
CLEAR_KEYS: Final = frozenset("\x15\x03")
DELETE_WORD_KEY: Final = "\x17"
ESCAPE_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z~]|O[A-Z]|.)?", re.DOTALL)
"""Escape sequences, such as arrow keys, which are ignored."""

READ_BYTES: Final = 4096
MAX_LINE_CHARS: Final = 4_000  # characters of a line
QUOTE_PREFIX: Final = "  | "  # prefix of lines written by an agent
POLL_INTERVAL_S: Final = 0.5  # seconds between checks for a signal while waiting for a line


def forget_typed() -> None:
    """Drop what was typed before a question was asked."""
    with suppress(termios.error, OSError, ValueError):  # stdin is not a terminal
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


@contextmanager
def disable_echo(keys: Callable[[bytes], None] | None = None) -> Iterator[None]:
    """Turn off echo inside the block; `keys` gets what is typed, key by key. Ctrl-C stays a signal.

    Without a terminal this does nothing.
    """
    try:
        number = sys.stdin.fileno()
        old_attributes = termios.tcgetattr(number)
    except (termios.error, OSError, ValueError):
        yield
        return
    new_attributes, loop = [*old_attributes], asyncio.get_running_loop()
    new_attributes[LOCAL_FLAGS] &= ~(termios.ECHO | (termios.ICANON if keys is not None else 0))
    termios.tcsetattr(number, termios.TCSANOW, new_attributes)
    if keys is not None:
        loop.add_reader(number, lambda: keys(_read_keys(number)))
    try:
        yield
    finally:
        loop.remove_reader(number)
        with suppress(termios.error):  # the terminal may be gone
            termios.tcsetattr(number, termios.TCSANOW, old_attributes)


def _read_keys(number: int) -> bytes:
    try:
        return os.read(number, READ_BYTES)
    except OSError:  # the terminal is gone: a signal will end the process
        return b""


class TypedLine:
    """A partly typed line, which is kept during a question."""

    def __init__(self) -> None:
        self.text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")

    def take(self, data: bytes) -> list[str]:
        """Add typed keys; return the lines they complete."""
        finished_lines = list[str]()
        for key in ESCAPE_SEQUENCE.sub("", self._decoder.decode(data)):
            if key in ENTER_KEYS:
                finished_lines.append(self.text.strip())
                self.text = ""
            elif key in BACKSPACE_KEYS:
                self.text = self.text[:-1]
            elif key in CLEAR_KEYS:
                self.text = ""
            elif key == DELETE_WORD_KEY:
                self.text = self.text.rstrip().rpartition(" ")[0]
            elif key.isprintable():
                self.text = f"{self.text}{key}"[:MAX_LINE_CHARS]
        return [line for line in finished_lines if line]


class PersonLeft(Exception):
    """The person left the question with Ctrl-C or Ctrl-D."""


def wrap_question(question: str) -> str:
    """Wrap a question between words to the width of the terminal. Quoted lines stay as they are."""
    width = shutil.get_terminal_size().columns
    lines = question.split("\n")
    return "\n".join(
        line if line.startswith(QUOTE_PREFIX) or cell_len(line) <= width else _wrap_line(line, width) for line in lines
    )


def _wrap_line(line: str, width: int) -> str:
    lines = textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False, drop_whitespace=True)
    return "\n".join(lines) + line[len(line.rstrip()) :]


@contextmanager
def handle_signals() -> Iterator[None]:
    """Handle signals while a person types, so that the process does not end with the echo turned off."""
    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    for number, _ in handlers:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    except (KeyboardInterrupt, EOFError):
        raise PersonLeft from None
    finally:
        for number, handler in handlers:
            signal.signal(number, handler)


def ask_line(question: str) -> str:
    """Ask a question and read a line; raise `PersonLeft` if the person leaves."""
    line = ""
    with suppress(PersonLeft), handle_signals():
        forget_typed()
        typer.echo(wrap_question(remove_control_characters(question)), err=True, nl=False)
        # A signal just before a blocking read would be handled only with the next line, so poll.
        while not select.select([sys.stdin], [], [], POLL_INTERVAL_S)[0]:
            pass
        line = sys.stdin.readline()
    if not line:
        typer.echo("", err=True)  # start a new line after the question
        raise PersonLeft
    return line


def ask(question: str, default: str = "") -> str:
    """Ask until the line is not empty. An empty line means the default, which is shown in brackets."""
    tip = f"{question} [{default}]: " if default else f"{question}: "
    while not (line := ask_line(tip).strip() or default):
        pass
    return line


def ask_secret(question: str) -> str:
    """Ask for a line that is not echoed."""
    while True:
        with handle_signals():
            line = getpass.getpass(f"{question}: ", stream=sys.stderr).strip()
        if line:
            return line


def choose(question: str, rows: Sequence[str]) -> int:
    """Ask for one of several rows by number; return its index. An empty answer means the first."""
    typer.echo(
        remove_control_characters(
            "\n".join((question, *(f"  {number:>2}  {row}" for number, row in enumerate(rows, 1))))
        ),
        err=True,
    )
    while True:
        answer = ask(translate("init.number"), "1")
        if answer.isdecimal() and 1 <= int(answer) <= len(rows):
            return int(answer) - 1
        typer.echo(translate("init.not_a_number", answer=answer, count=len(rows)), err=True)


def confirm(question: str) -> bool:
    """Ask a yes/no question; an empty line means no. Leaving it stops the command."""
    try:
        while (word := ask_line(question).strip().lower()) not in ("", "n", "no"):
            if word in ("y", "yes"):
                return True
        return False
    except PersonLeft:
        raise asyncio.CancelledError from None


def yes_or_no(tip: str, *, default: bool) -> str:
    """Append the possible answers to a question, on a new line if it has several lines."""
    gap = "\n" if "\n" in tip else " "
    return f"{tip}{gap}[{'Y/n' if default else 'y/N'}] "
