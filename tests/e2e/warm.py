"""Processes with a warm start: a server has loaded the command, and each call is a fork.

Each is a real process with its own environment, folder and streams. Only the half second in which Python loads the
command is saved. Cold starts are tested where startup is measured and in every shell line. Run as a program, this file
is the fork server.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import inspect
import io
import json
import os
import pkgutil
import random
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

import coverage

import greenroom

ROOT = Path(__file__).parents[2]
DOOR = "greenroom"
BESIDE = (
    *("pydantic.plugin._loader", "pydantic.types", "pydantic.type_adapter"),
    *("genai_prices", "genai_prices.data", "genai_prices.validation", "genai_prices.decompose"),
    *("prompt_toolkit.input.vt100", "prompt_toolkit.patch_stdout", "prompt_toolkit.key_binding.bindings.search"),
    *("jinja2", "jinja2.bccache", "jsonschema_rs", "rich._emoji_codes", "typer._adapters", "typer._click.decorators"),
    *("encodings.idna", "encodings.unicode_escape", "encodings.utf_8_sig", "importlib.resources.readers", "sysconfig"),
)
"""Third-party modules that are loaded lazily."""

SELDOM = {"__main__", "browser", "testing", "vendors"}
"""Our modules that are not worth preloading."""

LARGEST = 1 << 18
"""Maximum bytes of an order."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """A command line and its folder. stdin may be a controlling terminal."""

    words: Sequence[str]
    environment: Mapping[str, str]
    folder: str = ""
    terminal: bool = False


# ------------------------------------------------------------------------------------------------------- the caller


class Forked:
    """A started process with the interface of `subprocess`."""

    def __init__(self, order: Order, streams: tuple[int, int, int]) -> None:
        self._words = list(order.words)
        self._code: int | None = None
        self._told = threading.Event()
        back, reply = os.pipe()
        here = os.open(order.folder or ".", os.O_RDONLY)  # by its number: it may have no name any more
        known = {"words": order.words, "environment": order.environment, "terminal": order.terminal}
        socket.send_fds(_server(), [json.dumps(known).encode()], [*streams, here, reply])
        os.close(here)
        os.close(reply)
        self._back = os.fdopen(back, encoding="ascii")
        self.pid = int(self._back.readline())
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        with self._back:
            self._code = int(self._back.read())
        self._told.set()

    def poll(self) -> int | None:
        """Return its exit code if it has ended."""
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code."""
        if not self._told.wait(timeout) or self._code is None:
            raise subprocess.TimeoutExpired(self._words, timeout or 0)
        return self._code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


class Process:
    """A command whose streams are read. `end` waits for it, `send` sends it a signal."""

    def __init__(self, order: Order, stdin: str | None = None) -> None:
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        given, feed = os.pipe() if stdin is not None else (os.open(os.devnull, os.O_RDONLY), None)
        ends = (given, out_end, err_end)
        self._words = list(order.words)
        self._process = Forked(order, ends)
        self.pid, self.send = self._process.pid, self._process.send_signal
        for one in ends:
            os.close(one)
        self._said = {out: b"", err: b""}
        self._threads = [threading.Thread(target=self._read, args=(one,), daemon=True) for one in self._said]
        if feed is not None:
            self._threads.append(threading.Thread(target=_feed, args=(feed, (stdin or "").encode()), daemon=True))
        for thread in self._threads:
            thread.start()

    def _read(self, number: int) -> None:
        with os.fdopen(number, "rb") as stream:
            self._said[number] = stream.read()

    def end(self, timeout: float) -> tuple[int, str, str]:
        """Return the exit code, stdout and stderr, like `subprocess`."""
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
    try:
        with os.fdopen(number, "wb") as stream:
            stream.write(data)
    except BrokenPipeError:
        return  # it did not want to hear it all


@cache
def _server() -> socket.socket:
    """Start the server once per test process. It ends with that process."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    words = [sys.executable, "-m", "tests.e2e.warm", str(its.fileno())]
    process = subprocess.Popen(words, pass_fds=[its.fileno()], env=clean, cwd=ROOT)
    its.close()
    atexit.register(process.wait)
    atexit.register(mine.close)
    return mine


# ---------------------------------------------------------------------------------------------- the one that is forked


def _load() -> Callable[[], None]:
    """Load the command with all its lazy modules, and freeze the garbage collector."""
    ours = (one.name for one in pkgutil.walk_packages(greenroom.__path__, "greenroom."))
    for name in (*BESIDE, *ours):
        if not SELDOM.intersection(name.split(".")):
            importlib.import_module(name)
    inspect.stack()  # it keeps in mind which files all modules are from, and measuring begins with it
    gc.collect()
    gc.freeze()
    (entry,) = entry_points(group="console_scripts", name=DOOR)
    main: Callable[[], None] = entry.load()
    return main


def _orders(asked: socket.socket) -> tuple[Order, list[int]]:
    """Wait for orders and fork for each. Return in the process that runs the order."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, numbers, _, _ = socket.recv_fds(asked, LARGEST, 5)
        if not data:
            os._exit(0)  # the client has ended
        if os.fork() == 0:
            asked.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            *streams, reply = numbers
            _report_end_of_the_next(reply)
            return Order(**json.loads(data)), streams
        for one in numbers:
            os.close(one)


def _report_end_of_the_next(reply: int) -> None:
    """Fork again: this process waits and reports the pid and exit code of the child. Return in the child."""
    child = os.fork()
    if child == 0:
        os.close(reply)
        return
    os.write(reply, f"{child}\n".encode())
    os.closerange(3, reply)
    for one in (0, 1, 2):
        os.close(one)
    _, status = os.waitpid(child, 0)
    os.write(reply, str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(order: Order, streams: list[int]) -> None:
    """Take over the environment, folder and streams of a new process."""
    *three, here = streams
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
    sys.argv = [DOOR, *order.words]
    with suppress(FileNotFoundError):
        sys.path[0] = str(Path.cwd())
    for name, stream in zip(("stdin", "stdout", "stderr"), _standard(), strict=True):
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)  # keep it open beyond garbage collection
    coverage.process_startup(force=True)  # where its environment asks for it


def _standard() -> tuple[io.TextIOWrapper, ...]:
    """Return the three standard streams as Python makes them."""
    into, out, err = (io.FileIO(number, mode, closefd=False) for number, mode in ((0, "r"), (1, "w"), (2, "w")))
    return (
        io.TextIOWrapper(io.BufferedReader(into), encoding="utf-8"),
        io.TextIOWrapper(io.BufferedWriter(out), encoding="utf-8", line_buffering=out.isatty()),
        io.TextIOWrapper(io.BufferedWriter(err), encoding="utf-8", errors="backslashreplace", line_buffering=True),
    )


class Leaving:
    """Ends the process without unloading modules, which would take three times as long as most commands. It is
    registered first, so it runs after all other exit handlers."""

    code = 1

    def __call__(self) -> None:
        """Exit after Python's final steps."""
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            self.code = 120
        os._exit(self.code)


def _do(main: Callable[[], None], leaving: Leaving) -> None:
    try:
        main()
    except SystemExit as end:
        leaving.code = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise


if __name__ == "__main__":
    atexit.register(last := Leaving())
    command = _load()
    _become(*_orders(socket.socket(fileno=int(sys.argv[1]))))
    _do(command, last)
