"""A terminal that shows nothing of what is typed while somebody else speaks: it comes when the prompt does."""

from __future__ import annotations

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

LOCAL: Final = 3
"""Where the attributes of a terminal have what is about echoing."""


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
