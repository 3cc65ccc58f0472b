"""Keys that are pressed while something else is shown: no prompt, only a line that grows, and lines that are done."""

from __future__ import annotations

import codecs
import os
import re
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

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
def watched(keys: Callable[[bytes], None], listen: Callable[[int, Callable[[], None]], object]) -> Iterator[None]:
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
    listen(number, lambda: keys(_read(number)))
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal may have gone
            termios.tcsetattr(number, termios.TCSANOW, before)


def _read(number: int) -> bytes:
    try:
        return os.read(number, PIECE)
    except OSError:  # it has gone: whoever ends us because of that is on the way
        return b""
