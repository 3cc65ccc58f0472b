"""The warden seen from the house: started when it is first needed, ended with everything below it."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from greenroom.core.base.errors import WorldFault

ROOM: Final = str(Path(__file__).resolve().parents[3])
PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from greenroom.adapters.commands.warden.main import main; main(int(sys.argv[2]))"
)
LEAVING: Final = 8.0
"""Seconds that it has to end all that it looks after; it needs a fraction of one."""


class WardenProcess:
    """It runs in a session of its own, so that a Ctrl-C in our terminal is ours alone."""

    def __init__(self, env: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", PROGRAM, ROOM, str(theirs.fileno())],
                    cwd="/",
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise WorldFault(f"No command can be run: {sys.executable!r} does not start ({error}).") from error
        self._socket = ours

    @property
    def alive(self) -> bool:
        """Whether it can still be handed something."""
        return self._process.poll() is None

    def hand(self, control: int, output: int) -> None:
        """Let it look after one more command: one that is told through `control` and prints into `output`."""
        socket.send_fds(self._socket, [b"c"], [control, output])

    def close(self) -> None:
        """End everything that it looks after, and see it end."""
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(LEAVING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
