"""Run real `greenroom` processes in tests, with bounded waits and without sleeps."""

import atexit
import hashlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.e2e import warm
from tests.tiers import keep_known

GREENROOM = (sys.executable, "-m", "greenroom.cli")
PATIENCE = 60.0
"""Seconds after which a process that does not respond fails the test."""


@dataclass(frozen=True)
class Ended:
    """The exit code and output of a process."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        """Return the single object on stdout."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    @property
    def lines(self) -> list[dict[str, object]]:
        """Return the objects on stdout, one per line."""
        return [json.loads(line) for line in self.out.splitlines()]


NOBODY = "http://127.0.0.1:9/v1"
"""An address without a listener."""

CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""An empty trust store: there is no TLS here, and loading the real one takes longer than most commands."""

SERVERS = ("OLLAMA_HOST", "LMSTUDIO_BASE_URL", "LLAMACPP_BASE_URL", "VLLM_BASE_URL")
FOREIGN = ("CI", "NO_COLOR", "FORCE_COLOR", "GREENROOM_CONFIG", "GREENROOM_MODEL", "GREENROOM_MAX_COST")
BY_PYTHON = ("PYTHON", "LANG", "LC_")
SECRET = ("_KEY", "_TOKEN", "_BASE_URL")


@cache
def desk() -> str:
    """Return the default working folder: empty, and never the project's own."""
    folder = tempfile.mkdtemp(prefix="greenroom-desk-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return the test's environment without keys and model servers of a developer's shell."""
    kept = {
        name: value for name, value in os.environ.items() if name not in FOREIGN and not name.upper().endswith(SECRET)
    }
    own = {"GREENROOM_HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "COLUMNS": "120"}
    own["XDG_CACHE_HOME"] = str(home / "cache")
    if more.get("GREENROOM_SANDBOX") == "auto":
        keep_known(home / "cache")
    return {**kept, **own, **dict.fromkeys(SERVERS, NOBODY), **dict.fromkeys(CERTIFICATES, os.devnull), **more}


def counts_for_python(more: Iterable[str]) -> bool:
    """Return whether Python reads one of these variables at startup, so that a warm start is impossible."""
    return any(name.startswith(BY_PYTHON) for name in more)


def greenroom(home: Path, *words: str, stdin: str | None = None, cwd: str | None = None, **more: str) -> Ended:
    """Run a command to its end, with a warm start if possible."""
    if counts_for_python(more):
        return from_nothing(home, *words, stdin=stdin, cwd=cwd, **more)
    order = warm.Order(words=words, environment=environment(home, **more), folder=cwd or desk())
    ended = Ended(*warm.Process(order, stdin).end(PATIENCE))
    assert "Traceback" not in ended.err, ended.err
    return ended


def from_nothing(home: Path, *words: str, stdin: str | None = None, cwd: str | None = None, **more: str) -> Ended:
    """Do the same from a cold start, as a shell does."""
    done = subprocess.run(
        [*GREENROOM, *words],
        env=environment(home, **more),
        cwd=cwd or desk(),
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)


def contents(home: Path) -> dict[str, str]:
    """Return the content of the database and its folder, without SQLite's scratch files."""
    files = [file for file in sorted(home.rglob("*")) if file.is_file() and not file.name.endswith(("-wal", "-shm"))]
    return {str(file.relative_to(home)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def _through(words: Sequence[str], order: warm.Order, ends: tuple[int, int, int]) -> subprocess.Popen[bytes]:
    given, out, err = ends
    command = [*words, *GREENROOM, *order.words]
    return subprocess.Popen(command, env=order.environment, cwd=order.folder, stdin=given, stdout=out, stderr=err)


class Running:
    """A command that runs beside the test and is killed when the block ends. It starts warm, unless it runs `through`
    another program."""

    def __init__(self, home: Path, *words: str, through: Sequence[str] = (), **more: str) -> None:
        order = warm.Order(words=words, environment=environment(home, **more), folder=desk())
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        given = os.open(os.devnull, os.O_RDONLY)
        ends = (given, out_end, err_end)
        cold = through or counts_for_python(more)
        self._process = _through(through, order, ends) if cold else warm.Forked(order, ends)
        for one in ends:
            os.close(one)
        self._streams = (os.fdopen(out, encoding="utf-8"), os.fdopen(err, encoding="utf-8"))
        self._seen: dict[str, list[str]] = {"out": [], "err": []}
        self._new: queue.Queue[None] = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read, args=(name, stream), daemon=True)
            for name, stream in zip(self._seen, self._streams, strict=True)
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in self._streams:
            stream.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def _read(self, name: str, stream: IO[str]) -> None:
        for line in stream:
            self._seen[name].append(line)
            self._new.put(None)
        self._new.put(None)

    def until(self, text: str, *, stream: str = "err", timeout: float = PATIENCE) -> str:
        """Wait for a line with this text and return it."""
        deadline = time.monotonic() + timeout
        while True:
            found = next((line for line in self._seen[stream] if text in line), None)
            if found is not None:
                return found
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} did not come: {self._seen}"
            ended = self._process.poll() is not None and not any(reader.is_alive() for reader in self._readers)
            assert not ended, f"it ended without {text!r}: {self._seen}"
            try:
                self._new.get(timeout=min(left, 1.0))
            except queue.Empty:
                continue

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def end(self, timeout: float = PATIENCE) -> Ended:
        """Wait for its end."""
        code = self._process.wait(timeout)
        for reader in self._readers:
            reader.join(timeout)
        err = "".join(self._seen["err"])
        assert "Traceback" not in err, err
        return Ended(code, "".join(self._seen["out"]), err)
