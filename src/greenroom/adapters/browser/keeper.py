"""The keeper: a small program of ours between playwright and Chromium. It starts Chromium, as somebody else if told.

When Chromium ends, when the house lets go of the lifeline, or when either of them is killed, it ends every process that
Chromium has begun. It uses the standard library only, and nothing of the house, and is never imported by it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final

SET_DEATH_SIGNAL: Final = 1
SET_CHILD_SUBREAPER: Final = 36
SET_SECCOMP: Final = 22
SET_NO_NEW_PRIVILEGES: Final = 38
FILTER: Final = 2
LOAD, EQUAL, AT_LEAST, AND, ANSWER = 0x20, 0x15, 0x35, 0x54, 0x06
REFUSED, ALLOWED = 0x0005_0000 | errno.EACCES, 0x7FFF_0000
MACHINES: Final = {"x86_64": (0xC000_003E, 41), "aarch64": (0xC000_00B7, 198)}
"""How the kernel calls them, and their number for `socket`."""

OTHER_NUMBERS: Final = 0x4000_0000
"""From here on the same calls have second numbers on some machines."""

NOT_RUN: Final = 127
PIPES: Final = (3, 4)
"""Over which playwright talks to Chromium. Who keeps them open keeps their end from being noticed."""

GRACE: Final = 0.5
"""Seconds between being told to end and being killed."""

PATIENCE: Final = 5.0
LOOK: Final = 0.005
MEANT_FOR_OTHERS: Final = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def prctl(option: int, value: int) -> None:
    """Ask Linux for something; elsewhere the process group has to do."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def hang_on(folder: Path) -> int | None:
    """The lifeline, and a sign of life that lasts as long as we do; None when nobody is at the other end any more."""
    try:
        os.open(folder / "done", os.O_WRONLY | os.O_NONBLOCK)
        life = os.open(folder / "life", os.O_RDONLY | os.O_NONBLOCK)
        return life if os.read(life, 1) else None
    except OSError:
        return None


def become(uid: int, gid: int) -> None:
    """Somebody else, for good, if we are root."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)


def close_udp() -> None:
    """No socket of the internet but for TCP, whatever Chromium makes of its settings: UDP goes around proxies."""
    arch, call = MACHINES.get(os.uname().machine, (0, 0))
    if not call or not sys.platform.startswith("linux"):
        return
    lines = (
        (LOAD, 0, 0, 4),
        (EQUAL, 0, 10, arch),
        (LOAD, 0, 0, 0),
        (AT_LEAST, 7, 0, OTHER_NUMBERS),
        (EQUAL, 0, 7, call),
        (LOAD, 0, 0, 16),  # the family: IPv4, IPv6, or none of the internet
        (EQUAL, 1, 0, socket.AF_INET),
        (EQUAL, 0, 4, socket.AF_INET6),
        (LOAD, 0, 0, 24),  # the type, with flags in its higher bits
        (AND, 0, 0, 0xF),
        (EQUAL, 1, 0, socket.SOCK_STREAM),
        (ANSWER, 0, 0, REFUSED),
        (ANSWER, 0, 0, ALLOWED),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    if os.geteuid() != 0:
        prctl(SET_NO_NEW_PRIVILEGES, 1)
    library = ctypes.CDLL(None, use_errno=True)
    program = ctypes.create_string_buffer(struct.pack("@HP", len(lines), ctypes.addressof(code)))
    if library.prctl(SET_SECCOMP, FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "no filter for its sockets")


def start(profile: Path, owner: tuple[int, int], words: list[str]) -> int:
    """Fork Chromium. It dies if we do: that is said after it is somebody else, because becoming that forgets it."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        for number in (*MEANT_FOR_OTHERS, signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        close_udp()
        become(*owner)
        prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
        os.chdir(profile)
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


def end(group: int, ends: dict[int, int]) -> None:
    """Tell all to end, then kill until nobody is left."""
    for number, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, PATIENCE)):
        deadline = time.monotonic() + seconds
        tell(group, number)
        while not bury(ends) and time.monotonic() < deadline:
            time.sleep(LOOK)
            if number == signal.SIGKILL:
                tell(group, number)


def tell(group: int, number: int) -> None:
    """Send a signal to Chromium's group and to everybody below us."""
    for pid in (-group, *below()):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def noted(_: int, __: FrameType | None) -> None:
    """Its byte is in the pipe."""


def keep(folder: Path, owner: tuple[int, int], words: list[str]) -> int:
    """Start it, wait for its end or for ours, leave nobody behind."""
    news, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, noted)
    prctl(SET_DEATH_SIGNAL, signal.SIGTERM)
    prctl(SET_CHILD_SUBREAPER, 1)
    lifeline = hang_on(folder)
    if lifeline is None or os.getppid() == 1:
        return NOT_RUN
    browser = start(folder / "profile", owner, words)
    let_go()
    ends: dict[int, int] = {}
    told = False
    while browser not in ends and not told:
        ready, _, _ = select.select([news, lifeline], [], [])
        told = lifeline in ready or (news in ready and signal.SIGTERM in os.read(news, 4096))
        bury(ends)
    end(browser, ends)
    shutil.rmtree(folder, ignore_errors=True)  # a house that was killed cannot
    code = ends.get(browser, -signal.SIGKILL)
    return code if code >= 0 else 128 - code


def let_go() -> None:
    """Of what belongs to Chromium alone."""
    for pipe in PIPES:
        with suppress(OSError):
            os.close(pipe)


def main(folder: str, uid: str, gid: str, words: list[str]) -> int:
    """Be two: playwright kills the group of what it has started, and must not hit who clears up."""
    for number in MEANT_FOR_OTHERS:
        signal.signal(number, signal.SIG_IGN)
    pid = os.fork()
    if not pid:
        os.setsid()
        os._exit(keep(Path(folder), (int(uid), int(gid)), words))
    let_go()
    _, status = os.waitpid(pid, 0)
    return abs(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
