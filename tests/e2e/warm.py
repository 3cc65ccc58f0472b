"""Processes of the command that begin warm: a fork server has loaded it all, and each call is a fork of that one.

It is a process of its own like any other, with its own environment, folder and streams; only the half second in which
Python loads the command is spared. How it begins from nothing is tested where its start is measured and in every line
of a shell.
"""

from __future__ import annotations

import atexit
import fcntl
import io
import multiprocessing
import os
import pkgutil
import random
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing import reduction
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Protocol

import coverage

import greenroom
from greenroom.cli.main import main

BESIDE = (
    *("pydantic.plugin._loader", "pydantic.types", "pydantic.type_adapter"),
    *("genai_prices", "genai_prices.data", "genai_prices.validation", "genai_prices.decompose"),
    *("prompt_toolkit.input.vt100", "prompt_toolkit.patch_stdout", "prompt_toolkit.key_binding.bindings.search"),
    *("jinja2", "jinja2.bccache", "jsonschema_rs", "rich._emoji_codes", "typer._adapters", "typer._click.decorators"),
    *("encodings.idna", "encodings.unicode_escape", "encodings.utf_8_sig", "importlib.resources.readers", "sysconfig"),
)
"""What is not ours and loaded only when it is needed."""

SELDOM = {"__main__", "browser", "testing", "vendors"}
"""What of ours is not worth it."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is typed, and where: in this folder, or in the current one; stdin may be a terminal that belongs to it."""

    words: Sequence[str]
    environment: Mapping[str, str]
    folder: str = ""
    terminal: bool = False


class Duplicate(Protocol):
    """What `multiprocessing` sends in the place of a number."""

    def detach(self) -> int:
        """The number in the process that gets it."""
        ...


class Descriptor:
    """A file that is open here; to the new process it is the number that the file has there."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[object, ...]:
        return _detach, (reduction.DupFd(self._number),)


def _detach(duplicate: Duplicate) -> int:
    return duplicate.detach()


@cache
def _server() -> ForkServerContext:
    """Started with the first process, once for all tests of this one, and ended by its end."""
    context = multiprocessing.get_context("forkserver")
    ours = (module.name for module in pkgutil.walk_packages(greenroom.__path__, "greenroom."))
    context.set_forkserver_preload(
        ["pytest", __name__, *BESIDE, *(name for name in ours if not SELDOM & {*name.split(".")})]
    )
    return context


class Forked:
    """A process that has begun, to be waited for and ended as those of `subprocess` are."""

    def __init__(self, order: Order, streams: tuple[int, int, int]) -> None:
        self._words = list(order.words)
        here = os.open(order.folder or ".", os.O_RDONLY)  # by its number: it may have no name any more
        numbers = [Descriptor(number) for number in (*streams, here)]
        self._process = _server().Process(target=_become, args=(order, numbers), daemon=True)
        self._process.start()
        os.close(here)
        self.pid = self._process.pid or 0
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Its code, if it has ended."""
        with self._lock:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Its code, when it has ended."""
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(self._words, timeout or 0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Nothing is sent to one that has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


class Process:
    """A command whose streams are read; `end` waits for it, `send` sends it a signal."""

    def __init__(self, order: Order, stdin: str | None = None) -> None:
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        given, feed = os.pipe() if stdin is not None else (os.open(os.devnull, os.O_RDONLY), None)
        ends = (given, out_end, err_end)
        self._words = list(order.words)
        self._process = Forked(order, ends)
        self.pid, self.send = self._process.pid, self._process.send_signal
        for number in ends:
            os.close(number)
        self._said = {out: b"", err: b""}
        self._threads = [threading.Thread(target=self._read, args=(number,), daemon=True) for number in self._said]
        if feed is not None:
            self._threads.append(threading.Thread(target=_feed, args=(feed, (stdin or "").encode()), daemon=True))
        for thread in self._threads:
            thread.start()

    def _read(self, number: int) -> None:
        with os.fdopen(number, "rb") as stream:
            self._said[number] = stream.read()

    def end(self, timeout: float) -> tuple[int, str, str]:
        """The exit code, stdout and stderr, as `subprocess` has them."""
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))
        try:
            code = self._process.wait(max(until - time.monotonic(), 0))
            if any(thread.is_alive() for thread in self._threads):  # what it began still holds its streams
                raise subprocess.TimeoutExpired(self._words, timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        out, err = (data.decode() for data in self._said.values())
        return code, out, err


def _feed(number: int, data: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(number, "wb") as stream:  # it may not want to hear it all
        stream.write(data)


# ------------------------------------------------------------------------------------------------- in the new process


def _become(order: Order, numbers: list[int]) -> None:
    """Be like a process that has just been started with the command; then run it."""
    *three, here = numbers
    for number, behind in enumerate(three):
        os.dup2(behind, number)
        os.close(behind)
    if order.terminal:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.fchdir(here)
    os.close(here)
    os.environ.clear()
    os.environ.update(order.environment)
    time.tzset()
    random.seed()
    sys.argv = ["greenroom", *order.words]
    with suppress(FileNotFoundError):
        sys.path[0] = str(Path.cwd())
    for name, stream in zip(("stdin", "stdout", "stderr"), _standard(), strict=True):
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)  # nobody closes it by forgetting it
    measuring = coverage.process_startup(force=True)  # where its environment asks for it
    try:
        main()
    finally:
        atexit._run_exitfuncs()
        if measuring is not None:
            measuring.stop()
            measuring.save()


def _standard() -> tuple[io.TextIOWrapper, ...]:
    """The three streams as Python makes them."""
    into, out, err = (io.FileIO(number, mode, closefd=False) for number, mode in ((0, "r"), (1, "w"), (2, "w")))
    return (
        io.TextIOWrapper(io.BufferedReader(into), encoding="utf-8"),
        io.TextIOWrapper(io.BufferedWriter(out), encoding="utf-8", line_buffering=out.isatty()),
        io.TextIOWrapper(io.BufferedWriter(err), encoding="utf-8", errors="backslashreplace", line_buffering=True),
    )
