"""Stdout and stderr as they may be: closed, full, or read by nobody any more."""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, TextIO

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
