"""The process: its signals, and its three streams as they may be: closed, full, or read by no program any more."""

from __future__ import annotations

import io
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from types import FrameType
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STDIN, STDOUT, STDERR = STANDARD = (0, 1, 2)


class Unfailing(io.FileIO):
    """Stderr that swallows what it cannot write: nobody's work ends because nobody hears of it."""

    def write(self, data: ReadableBuffer) -> int:
        """Write, or fall silent for good."""
        try:
            while (written := super().write(data)) is None:
                select.select((), (self,), ())  # somebody who shares it has set it to not wait
        except OSError:
            hush(self)
            return memoryview(data).nbytes
        return written


def make_firm() -> None:
    """See that there are three streams, and that stderr does not fail. Called once, by the process's main."""
    for number in STANDARD:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number: this one
    sys.stdin = sys.stdin or os.fdopen(STDIN, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(STDOUT, "w", closefd=False)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(Unfailing(STDERR, "w", closefd=False)),
        encoding=sys.stderr.encoding if sys.stderr else None,
        errors="backslashreplace",
        line_buffering=True,
    )


@contextmanager
def answering() -> Iterator[TextIO]:
    """The answer's own stream. Meanwhile stdout is stderr for everybody else: for what a tool prints, and its children.

    A program that reads JSON from here must not find anybody's words between it.
    """
    stream = sys.stdout
    stream.flush()
    if not _is_standard(stream):
        with redirect_stdout(sys.stderr):
            yield stream
        return
    with _moved(STDOUT) as number, redirect_stdout(sys.stderr):
        own = os.fdopen(number, "w", encoding=stream.encoding, errors="replace", closefd=False)
        try:
            yield own
        finally:
            own.flush()


def _is_standard(stream: TextIO) -> bool:
    try:
        return stream.fileno() == STDOUT
    except (OSError, ValueError):
        return False  # what stands in for it in a test


@contextmanager
def _moved(number: int) -> Iterator[int]:
    """Another number for what is behind this one, which means stderr until the end."""
    kept = os.dup(number)
    os.dup2(STDERR, number)
    try:
        yield kept
    finally:
        os.dup2(kept, number)
        os.close(kept)


def hush(stream: TextIO | io.FileIO) -> None:
    """Nothing more is written to it, and no error comes of it, not even while Python ends."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return  # no file: what stands in for one in a test
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


SHOW_CURSOR: Final = b"\x1b[?25h"
BY_SIGNAL: Final = 128
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
