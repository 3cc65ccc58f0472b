"""Run the `greenroom` command as a process: a server that has loaded it forks once per command.

Only the entry point in the package's metadata is used, so that modules may move. Started as a program, this file is
the server: `python -m tests.acceptance.process FD`.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60.0
MAX_ORDER_BYTES = 1 << 18


@dataclass(frozen=True)
class Ended:
    """The exit code, stdout and stderr of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        """The object on stdout."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    @property
    def lines(self) -> list[dict[str, object]]:
        """The objects on stdout, one per line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Process:
    """A command that runs; `end` waits for it, `send` sends it a signal."""

    def __init__(
        self, words: Sequence[str], environment: Mapping[str, str], folder: Path, stdin: str | None = None
    ) -> None:
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        given, feed = os.pipe() if stdin is not None else (os.open(os.devnull, os.O_RDONLY), None)
        status, status_end = os.pipe()
        order = json.dumps({"words": list(words), "environment": dict(environment), "folder": str(folder)})
        ends = [given, out_end, err_end, status_end]
        socket.send_fds(_server(), [order.encode()], ends)
        for number in ends:
            os.close(number)
        if feed is not None:
            with suppress(BrokenPipeError), os.fdopen(feed, "wb") as stream:
                stream.write((stdin or "").encode())
        self._status = os.fdopen(status, encoding="ascii")
        self.pid = int(self._status.readline())
        self._streams = [os.fdopen(number, "rb") for number in (out, err)]
        self._read: list[bytes] = [b"", b""]
        self._readers = [
            threading.Thread(target=self._collect, args=(place, stream), daemon=True)
            for place, stream in enumerate(self._streams)
        ]
        for reader in self._readers:
            reader.start()

    def _collect(self, place: int, stream: IO[bytes]) -> None:
        with stream:
            self._read[place] = stream.read()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def end(self) -> Ended:
        """Wait for its end; after TIMEOUT_S it is killed, which fails the test."""
        until = time.monotonic() + TIMEOUT_S
        for reader in self._readers:
            reader.join(max(until - time.monotonic(), 0))
        if any(reader.is_alive() for reader in self._readers):
            with suppress(ProcessLookupError):
                self.send(signal.SIGKILL)
            raise AssertionError(f"The command has not ended after {TIMEOUT_S:.0f} s.")
        with self._status:
            code = int(self._status.read())
        out, err = (data.decode() for data in self._read)
        assert "Traceback" not in err, err
        return Ended(code, out, err)


@cache
def _server() -> socket.socket:
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    words = [sys.executable, "-m", __name__, str(its.fileno())]
    process = subprocess.Popen(words, pass_fds=[its.fileno()], env=clean, cwd=ROOT)
    its.close()
    atexit.register(process.wait)
    atexit.register(mine.close)
    return mine


def _serve(orders: socket.socket) -> None:
    """Load the command, then fork twice per order: one process waits and reports, the other becomes the command."""
    (entry,) = entry_points(group="console_scripts", name="greenroom")
    main: Callable[[], None] = entry.load()
    package = sys.modules[entry.module.rpartition(".")[0]]
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            pkgutil.resolve_name(module.name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, numbers, _, _ = socket.recv_fds(orders, MAX_ORDER_BYTES, 4)
        if not data:
            os._exit(0)
        if os.fork() == 0:
            orders.close()
            _become(json.loads(data), numbers)
            break
        for number in numbers:
            os.close(number)
    try:
        main()
        LEAVE.code = 0
    except SystemExit as end:
        LEAVE.code = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise


def _become(order: dict[str, Any], numbers: list[int]) -> None:
    """Fork once more; comes back in the process that is the command."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, status = numbers
    child = os.fork()
    if child:
        os.write(status, f"{child}\n".encode())
        for number in (*streams, 0, 1, 2):
            os.close(number)
        _, ended = os.waitpid(child, 0)
        os.write(status, str(os.waitstatus_to_exitcode(ended)).encode())
        os._exit(0)
    os.close(status)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may have inherited it ignored
    sys.argv = ["greenroom", *order["words"]]


class Leave:
    """Registered first, so called last at exit: ends without taking apart every loaded module, which is slow."""

    code = 1

    def __call__(self) -> None:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(self.code)


LEAVE = Leave()

if __name__ == "__main__":
    atexit.register(LEAVE)
    _serve(socket.socket(fileno=int(sys.argv[1])))
