"""The descendants of a process: keep them findable, list them, and end them all.

This module also wraps C library functions that Python lacks. The supervisor's modules use the standard library only.
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


def call_libc(name: str, *arguments: Argument) -> int:
    """Call a function of the C library. Raise `OSError` if it fails."""
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
    """Call `prctl` with all five arguments."""
    call_libc("prctl", option, *arguments, *(0,) * (4 - len(arguments)))


PROC: Final = Path("/proc")
SET_DEATH_SIGNAL: Final = 1
SET_CHILD_SUBREAPER: Final = 36

TERMINAL_SIGNALS: Final = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
POLL_INTERVAL_S: Final = 0.002
"""Seconds between two checks of killed processes, if no signal arrives."""

KILL_TIMEOUT_S: Final = 5.0
"""How long to wait for a killed process to die, in seconds. With a broken disk it may take longer."""


def prctl(option: int, value: int) -> bool:
    """Call `prctl`; return False where it is not available or fails."""
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError):
        process_control(option, value)
        return True
    return False


def die_with_parent(number: int) -> bool:
    """Send this signal to the current process when its parent ends; return False if unsupported."""
    return prctl(SET_DEATH_SIGNAL, number)


def open_signal_pipe(*numbers: int) -> int:
    """Return a pipe that receives a byte for each of these signals, so that one `select` can wait for all."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, _ignore_signal)
    return read


def _ignore_signal(_: int, __: FrameType | None) -> None:
    """Do nothing: the signal's byte is in the pipe."""


def wait_for_signals(signal_pipe: int, seconds: float | None, *others: int) -> tuple[bytes, list[int]]:
    """Wait for signals and for `others` to become readable, at most `seconds`. Return both."""
    ready, _, _ = select.select([signal_pipe, *others], [], [], seconds)
    signals = b""
    if signal_pipe in ready:
        with suppress(BlockingIOError):
            signals = os.read(signal_pipe, 4096)
    return signals, [number for number in others if number in ready]


def ignore_terminal_signals() -> None:
    """Ignore signals of the terminal (Ctrl-C, hang-up). Greenroom itself handles them."""
    for number in TERMINAL_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process, or to a group if `pid` is negative. Ignore missing processes."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


class ProcessTree:
    """The descendants of the current process, including orphans that it adopts."""

    def __init__(self) -> None:
        self.is_contained = prctl(SET_CHILD_SUBREAPER, 1) and PROC.is_dir()
        self._has_child_lists = Path(f"/proc/self/task/{os.getpid()}/children").exists()
        self._pid = os.getpid()
        self.exit_codes: dict[int, int] = {}
        """The exit codes of reaped children."""

        self.spared_pid = 0
        """A process that gets no SIGTERM, only SIGKILL: its end would kill the others immediately."""

    def reap(self) -> bool:
        """Reap dead children; return True if there is no child left.

        That proves that all descendants are dead: a live one would be a child or below a child.
        """
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            self.exit_codes[pid] = os.waitstatus_to_exitcode(status)

    def list_children(self, pid: int | None = None) -> list[int]:
        """Return the children of a process. The list may be incomplete while processes end; call it again."""
        pid = self._pid if pid is None else pid
        if not self._has_child_lists:  # not every kernel lists children: search all processes
            entries = PROC.iterdir() if PROC.is_dir() else ()
            return [int(entry.name) for entry in entries if entry.name.isdigit() and _read_parent(entry) == pid]
        pids: list[int] = []
        with suppress(OSError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                listed = (thread / "children").read_text(encoding="ascii")
                pids += map(int, listed.split())
        return pids

    def list_descendants(self, *roots: int) -> list[int]:
        """Return all descendants of these processes, or of the current one, parents first."""
        pids = [child for root in roots or (self._pid,) for child in self.list_children(root)]
        for pid in pids:
            pids += [child for child in self.list_children(pid) if child not in pids]
        return pids

    def terminate(self, group: int, signal_pipe: int, grace: float) -> bool:
        """Send SIGTERM, wait for `grace` seconds, then kill all. Return False if a process does not die."""
        self._signal_all(group, signal.SIGTERM)
        self._signal_all(group, signal.SIGCONT)
        deadline = time.monotonic() + grace
        while (left := deadline - time.monotonic()) > 0:
            if self.is_gone(group):
                return True
            wait_for_signals(signal_pipe, left if self.is_contained else min(left, POLL_INTERVAL_S))
        return self.kill(group, signal_pipe)

    def kill(self, group: int, signal_pipe: int) -> bool:
        """Kill until no process is left. There is no pause while new ones appear, because some fork very fast."""
        deadline = time.monotonic() + KILL_TIMEOUT_S
        signalled: set[int] = set()
        while not self.is_gone(group):
            if time.monotonic() > deadline:
                return False
            found = self._signal_all(group, signal.SIGKILL)
            wait_for_signals(signal_pipe, 0 if found - signalled else POLL_INTERVAL_S)
            signalled |= found
        return True

    def is_gone(self, group: int) -> bool:
        """Return whether no descendant is left. Where orphans are not adopted, check the process group."""
        is_empty = self.reap()
        return is_empty if self.is_contained else is_empty and not _is_group_alive(group)

    def _signal_all(self, group: int, number: int) -> set[int]:
        """Send a signal to each process once. A second SIGTERM could interrupt a clean-up."""
        spared = self.spared_pid if number != signal.SIGKILL else 0
        if group > 0 and not spared:
            send_signal(-group, number)
        pids = self.list_descendants() if self.is_contained else []
        for pid in pids:
            if pid != spared and (spared or _read_group(pid) != group):
                send_signal(pid, number)
        return set(pids)


def _read_group(pid: int) -> int | None:
    """Return the process group; None if the process is gone."""
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def _is_group_alive(group: int) -> bool:
    if group <= 0:
        return False
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, 0)
        return True
    return False


def _read_parent(entry: Path) -> int:
    with suppress(OSError, IndexError, ValueError):
        return int((entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
    return 0
