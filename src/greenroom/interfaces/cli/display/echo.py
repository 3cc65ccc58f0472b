"""What is typed while somebody else speaks: it is not shown before the prompt comes, and never answers a question."""

from __future__ import annotations

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

LOCAL: Final = 3
"""Where the attributes of a terminal have what is about echoing."""


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
