"""Stdout and stderr as they may be: closed, full, or read by nobody any more."""

from __future__ import annotations

import io
import os
import select
import sys
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


def hush(stream: TextIO | io.FileIO) -> None:
    """Nothing more is written to it, and no error comes of it, not even while Python ends."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return  # no file: what stands in for one in a test
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
