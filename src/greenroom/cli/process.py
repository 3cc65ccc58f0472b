"""The process: its signals and its three standard streams, which may be closed, full or without a reader."""

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

STDIN, STDOUT, STDERR = STANDARD_STREAMS = (0, 1, 2)


class UnfailingStderr(io.FileIO):
    """Stderr that drops what it cannot write, so that a missing reader never ends a run."""

    def write(self, data: ReadableBuffer) -> int:
        """Write the data; after the first failure, drop everything."""
        try:
            while (written := super().write(data)) is None:
                select.select((), (self,), ())  # another process that shares it made it non-blocking
        except OSError:
            silence(self)
            return memoryview(data).nbytes
        return written


def secure_streams() -> None:
    """Open missing standard streams and make stderr unfailing. The main function calls this once."""
    for number in STANDARD_STREAMS:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor: this one
    sys.stdin = sys.stdin or os.fdopen(STDIN, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(STDOUT, "w", closefd=False)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(UnfailingStderr(STDERR, "w", closefd=False)),
        encoding=sys.stderr.encoding if sys.stderr else None,
        errors="backslashreplace",
        line_buffering=True,
    )


@contextmanager
def open_answer_stream() -> Iterator[TextIO]:
    """Yield the stream for results, and redirect stdout to stderr for everything else: tools and their children.

    A program that reads JSON from stdout must not find other output in between.
    """
    stream = sys.stdout
    stream.flush()
    if not _is_standard(stream):
        with redirect_stdout(sys.stderr):
            yield stream
        return
    with _redirect_to_stderr(STDOUT) as number, redirect_stdout(sys.stderr):
        answer_stream = os.fdopen(number, "w", encoding=stream.encoding, errors="replace", closefd=False)
        try:
            yield answer_stream
        finally:
            answer_stream.flush()


def _is_standard(stream: TextIO) -> bool:
    try:
        return stream.fileno() == STDOUT
    except (OSError, ValueError):
        return False  # a stand-in in a test


@contextmanager
def _redirect_to_stderr(number: int) -> Iterator[int]:
    """Duplicate this file descriptor, and point the original to stderr inside the block."""
    saved = os.dup(number)
    os.dup2(STDERR, number)
    try:
        yield saved
    finally:
        os.dup2(saved, number)
        os.close(saved)


def silence(stream: TextIO | io.FileIO) -> None:
    """Redirect the stream to /dev/null, so that later writes cannot fail, not even at exit."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return  # a stand-in in a test
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, number)
    os.close(devnull)


SHOW_CURSOR: Final = b"\x1b[?25h"
SIGNAL_EXIT_BASE: Final = 128
RUN_COMMANDS: Final = frozenset({"run", "ask", "chat"})
ENDING_SIGNALS: Final = frozenset({"SIGINT", "SIGTERM", "SIGHUP"})


def find_ending_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that end the process. Signals that the parent ignores (`nohup`) stay ignored."""
    present = (number for number in signal.Signals if number.name in ENDING_SIGNALS)  # not every system has all of them
    return tuple(number for number in present if signal.getsignal(number) is not signal.SIG_IGN)


def end_at_once(number: int, _: FrameType | None = None, *, last_words: str = "") -> None:
    """End the process now, with its `last_words`. Nothing is lost: all acknowledged events are on disk."""
    with suppress(OSError):  # the terminal may be gone
        if os.isatty(STDERR):
            os.write(STDERR, SHOW_CURSOR)
        if last_words:  # below a table that may be on the screen
            os.write(STDERR, f"\n{last_words}\n".encode())
    os._exit(SIGNAL_EXIT_BASE + number)


def end_early(number: int, _: FrameType | None = None) -> None:
    """End the process before its command has started. Ctrl-C before a run prints that there is none."""
    if number == signal.SIGINT and RUN_COMMANDS.intersection(sys.argv):
        with suppress(OSError):
            os.write(STDERR, b"Stopped. Nothing was started.\n")
    end_at_once(number)


def install_exit_handlers() -> None:
    """End the process on a signal with the usual exit code and without a traceback."""
    for number in find_ending_signals():
        signal.signal(number, end_early)


@contextmanager
def restore_signals() -> Iterator[None]:
    """Restore the signal handlers after the block, because an event loop does not."""
    handlers = [(number, signal.getsignal(number)) for number in find_ending_signals()]
    try:
        yield
    finally:
        for number, handler in handlers:
            signal.signal(number, end_at_once if handler is end_early else handler)
