"""Signals: the first words of the process, before anything heavy is imported, and its last ones."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

SHOW_CURSOR: Final = b"\x1b[?25h"
BY_SIGNAL: Final = 128
STDERR: Final = 2
ENDING: Final = frozenset({"SIGINT", "SIGTERM", "SIGHUP"})


def heard() -> tuple[signal.Signals, ...]:
    """The signals that end us. What our parent ignores for us (`nohup`, a job in the background) stays ignored."""
    known = (one for one in signal.Signals if one.name in ENDING)  # not every system has them all
    return tuple(one for one in known if signal.getsignal(one) is not signal.SIG_IGN)


def end_at_once(number: int, _: FrameType | None = None) -> None:
    """End without a word. What is acknowledged is on disk: nothing is lost by not saying goodbye."""
    with suppress(OSError):  # the terminal may be what has gone
        if os.isatty(STDERR):
            os.write(STDERR, SHOW_CURSOR)
    os._exit(BY_SIGNAL + number)


def end_quietly() -> None:
    """From now on a signal ends the process with the code that shells know, and without a traceback."""
    for one in heard():
        signal.signal(one, end_at_once)


@contextmanager
def kept() -> Iterator[None]:
    """Afterwards signals mean again what they meant before: an event loop forgets that."""
    before = [(one, signal.getsignal(one)) for one in heard()]
    try:
        yield
    finally:
        for one, handler in before:
            signal.signal(one, handler)
