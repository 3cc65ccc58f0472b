"""A person at a terminal: a pty with a real `greenroom`, key presses, and a screen to read."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.e2e import warm
from tests.e2e.terminal import GREENROOM, PATIENCE, counts_for_python, desk, environment

ENTER, CTRL_C, CTRL_D, TAB, UP = "\r", "\x03", "\x04", "\t", "\x1b[A"
STEERING = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>()][0B]?|\r")
PROMPT = "›"
GRACE = 10.0
"""Seconds to end by itself."""

ITS_OWN = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
"""Make the terminal the controlling terminal, so that keys send signals. -S skips the coverage measurement."""


def _through_a_shell(order: warm.Order, slave: int, piped: str) -> subprocess.Popen[bytes]:
    shell = ("/bin/sh", "-c", f'exec "$@" {piped}', "sh")
    return subprocess.Popen(
        [sys.executable, "-S", "-c", ITS_OWN, *shell, *GREENROOM, *order.words],
        env=order.environment,
        cwd=order.folder,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )


class Typing:
    """A command on a terminal with `columns` columns, ended when the block ends. `piped` is a shell redirection that
    replaces stdin."""

    def __init__(
        self, home: Path, *words: str, columns: str = "100", piped: str = "", cwd: str | None = None, **more: str
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, int(columns), 0, 0))
        surroundings = environment(home, **{"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", **more})
        surroundings.pop("COLUMNS")
        order = warm.Order(words=words, environment=surroundings, folder=cwd or desk(), terminal=True)
        cold = piped or counts_for_python(more)
        self.process = _through_a_shell(order, slave, piped) if cold else warm.Forked(order, (slave, slave, slave))
        os.close(slave)
        self._seen = ""
        self._raw = b""
        self._read_so_far = 0
        self._news = threading.Condition()
        self._over = False
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    def _read(self) -> None:
        decoded = b""
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                data = b""
            with self._news:
                decoded += data
                self._raw = decoded
                self._seen = STEERING.sub("", decoded.decode(errors="ignore"))
                self._over = not data
                self._news.notify_all()
            if not data:
                return

    @property
    def seen(self) -> str:
        """Return all output so far without control sequences."""
        with self._news:
            return self._seen

    @property
    def raw(self) -> bytes:
        """Return all bytes that the terminal got."""
        with self._news:
            return self._raw

    def until(self, text: str) -> str:
        """Wait until this appears after the last match. Return the output since then."""
        deadline = time.monotonic() + PATIENCE
        with self._news:
            while (found := self._seen.find(text, self._read_so_far)) < 0:
                left = deadline - time.monotonic()
                assert left > 0, f"{text!r} did not come: {self._seen!r}"
                assert not self._over, f"it ended without {text!r}: {self._seen!r}"
                self._news.wait(min(left, 1.0))
            begun, self._read_so_far = self._read_so_far, found + len(text)
            return self._seen[begun : self._read_so_far]

    def press(self, *keys: str) -> None:
        """Press these keys."""
        os.write(self._master, "".join(keys).encode())

    def says(self, text: str) -> None:
        """Type a line at the prompt."""
        self.until(PROMPT)
        self.press(text, ENTER)

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        self.process.send_signal(number)

    def ends(self) -> int:
        """Wait for its end and return its exit code."""
        code = self.process.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        with self._news:
            while not self._over and time.monotonic() < deadline:
                self._news.wait(1.0)
        assert "Traceback" not in self.seen, self.seen
        return code
