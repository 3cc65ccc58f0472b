"""The processes below this one: how they stay findable, are listed, and are ended until none is left.

And functions of the C library that Python does not have. The supervisor's modules use the standard library only.
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

LIBC: Final = ctypes.CDLL(None, use_errno=True)
Argument = int | bytes | ctypes.Structure


def call(name: str, *arguments: Argument) -> int:
    """Call this function of the C library; `OSError` when it says no."""
    result = int(getattr(LIBC, name)(*map(_c_value, arguments)))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _c_value(argument: Argument) -> object:
    if isinstance(argument, ctypes.Structure):
        return ctypes.byref(argument)
    return ctypes.c_long(argument) if isinstance(argument, int) else argument


def process_control(option: int, *arguments: Argument) -> None:
    """`prctl`, all five arguments of it."""
    call("prctl", option, *arguments, *(0,) * (4 - len(arguments)))


PROC: Final = Path("/proc")
SET_DEATH_SIGNAL: Final = 1
SET_CHILD_SUBREAPER: Final = 36

TERMINAL: Final = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
LOOK: Final = 0.002
"""Seconds between two looks at processes that were killed, when no news of them comes."""

PATIENCE: Final = 5.0
"""Seconds that a killed process has to die. One that waits for a broken disk may need longer than anybody has."""


def prctl(option: int, value: int) -> bool:
    """Ask Linux for something; False where that is not possible."""
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError):
        process_control(option, value)
        return True
    return False


def die_with_parent(number: int) -> bool:
    """Get this signal when our parent ends, however it ends; False where the system cannot do that."""
    return prctl(SET_DEATH_SIGNAL, number)


def news_of(*numbers: int) -> int:
    """A pipe that has a byte for each of these signals that came: one thing to wait for."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, _noted)
    return read


def _noted(_: int, __: FrameType | None) -> None:
    """Its byte is in the pipe."""


def wait(news: int, seconds: float | None, *others: int) -> tuple[bytes, list[int]]:
    """The signals that came, and which of `others` can be read; nothing after so many seconds."""
    ready, _, _ = select.select([news, *others], [], [], seconds)
    heard = b""
    if news in ready:
        with suppress(BlockingIOError):
            heard = os.read(news, 4096)
    return heard, [number for number in others if number in ready]


def ignore_terminal() -> None:
    """What is meant for Greenroom (Ctrl-C, a terminal that closes) is nothing to this process."""
    for number in TERMINAL:
        signal.signal(number, signal.SIG_IGN)


def send(pid: int, number: int) -> None:
    """Send a signal to a process, or (below zero) to a group, if it is still there."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


class Family:
    """All that this process is the parent of, and becomes the parent of when others die."""

    def __init__(self) -> None:
        self.contained = prctl(SET_CHILD_SUBREAPER, 1) and PROC.is_dir()
        self._listed = Path(f"/proc/self/task/{os.getpid()}/children").exists()
        self._me = os.getpid()
        self.ends: dict[int, int] = {}
        """How those ended that are buried."""

        self.spared = 0
        """One that is killed with the rest, but not told to end: it would take the others with it at once."""

    def bury(self) -> bool:
        """Take note of the dead; True when nobody at all is left.

        That is the proof that all are dead: whoever still lived would be our child, or the child of one.
        """
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            self.ends[pid] = os.waitstatus_to_exitcode(status)

    def children(self, pid: int | None = None) -> list[int]:
        """The children of a process. It may miss some while others end: whoever must find all looks again."""
        pid = self._me if pid is None else pid
        if not self._listed:  # not every kernel lists children: look through the table of all processes
            every = PROC.iterdir() if PROC.is_dir() else ()
            return [int(entry.name) for entry in every if entry.name.isdigit() and _parent(entry) == pid]
        found: list[int] = []
        with suppress(OSError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                listed = (thread / "children").read_text(encoding="ascii")
                found += map(int, listed.split())
        return found

    def below(self, *roots: int) -> list[int]:
        """All processes below these (or below us), parents first."""
        found = [child for root in roots or (self._me,) for child in self.children(root)]
        for pid in found:
            found += [child for child in self.children(pid) if child not in found]
        return found

    def end(self, group: int, news: int, grace: float) -> bool:
        """Tell all to end, give them a moment, then kill until nobody is left; False when somebody does not die."""
        self._tell(group, signal.SIGTERM)
        self._tell(group, signal.SIGCONT)
        deadline = time.monotonic() + grace
        while (left := deadline - time.monotonic()) > 0:
            if self.gone(group):
                return True
            wait(news, left if self.contained else min(left, LOOK))
        return self.kill(group, news)

    def kill(self, group: int, news: int) -> bool:
        """Kill until nobody is left. There is no pause while there are new ones: some fork as fast as we look."""
        deadline = time.monotonic() + PATIENCE
        told: set[int] = set()
        while not self.gone(group):
            if time.monotonic() > deadline:
                return False
            known = self._tell(group, signal.SIGKILL)
            wait(news, 0 if known - told else LOOK)
            told |= known
        return True

    def gone(self, group: int) -> bool:
        """Whether nobody is left; where orphans cannot be kept, nobody of the process group."""
        alone = self.bury()
        return alone if self.contained else alone and not _is_there(group)

    def _tell(self, group: int, number: int) -> set[int]:
        """Each is told once: who tidies up when it is told to end should not be told in the middle of that."""
        spared = self.spared if number != signal.SIGKILL else 0
        if group > 0 and not spared:
            send(-group, number)
        found = self.below() if self.contained else []
        for pid in found:
            if pid != spared and (spared or _group_of(pid) != group):
                send(pid, number)
        return set(found)


def _group_of(pid: int) -> int | None:
    """Its process group; None when it is gone."""
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def _is_there(group: int) -> bool:
    if group <= 0:
        return False
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, 0)
        return True
    return False


def _parent(entry: Path) -> int:
    with suppress(OSError, IndexError, ValueError):
        return int((entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
    return 0
