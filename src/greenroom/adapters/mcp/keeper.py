"""The keeper: a small program of ours between the house and a server. It starts the server and hands it its pipes.

When the server ends, when the house lets go of the lifeline, or when the house is killed, it ends every process that
the server has begun. It uses the standard library only, and nothing of the house, and is never imported by it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final

SET_DEATH_SIGNAL: Final = 1
SET_CHILD_SUBREAPER: Final = 36
NOT_RUN: Final = 127
GRACE: Final = 0.3
"""Seconds between being told to end and being killed."""

PATIENCE: Final = 5.0
LOOK: Final = 0.005
MEANT_FOR_OTHERS: Final = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def prctl(option: int, value: int) -> None:
    """Ask Linux for something; elsewhere the process group has to do."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def start(words: list[str], lifeline: int) -> int:
    """Fork the server: it has the pipes that we were given, and dies if we do."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
        os.close(lifeline)
        signal.set_wakeup_fd(-1)
        for number in (*MEANT_FOR_OTHERS, signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(words[0], words)
    except OSError as error:
        os.write(2, f"{words[0]} could not be started: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(NOT_RUN)


def bury(ends: dict[int, int]) -> bool:
    """Take note of the dead; True when nobody is left below us."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return False
        ends[pid] = os.waitstatus_to_exitcode(status)


def below() -> set[int]:
    """All processes below this one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found, before = {os.getpid()}, 0
    while len(found) > before:
        before = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return found - {os.getpid()}


def tell(group: int, number: int) -> None:
    """Send a signal to the server's group and to everybody below us."""
    for pid in (-group, *below()):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end(group: int, ends: dict[int, int]) -> None:
    """Tell all to end, then kill until nobody is left."""
    for number, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, PATIENCE)):
        deadline = time.monotonic() + seconds
        tell(group, number)
        while not bury(ends) and time.monotonic() < deadline:
            time.sleep(LOOK)
            if number == signal.SIGKILL:
                tell(group, number)


def noted(_: int, __: FrameType | None) -> None:
    """Its byte is in the pipe."""


def main(lifeline: int, words: list[str]) -> int:
    """Start it, wait for its end or for ours, leave nobody behind."""
    for number in MEANT_FOR_OTHERS:
        signal.signal(number, signal.SIG_IGN)
    news, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, noted)
    prctl(SET_CHILD_SUBREAPER, 1)
    server = start(words, lifeline)
    nothing = os.open(os.devnull, os.O_RDWR)
    for pipe in range(3):
        os.dup2(nothing, pipe)
    ends: dict[int, int] = {}
    told = False
    while server not in ends and not told:
        ready, _, _ = select.select([news, lifeline], [], [])
        told = lifeline in ready or (news in ready and signal.SIGTERM in os.read(news, 4096))
        bury(ends)
    end(server, ends)
    code = ends.get(server, -signal.SIGKILL)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
