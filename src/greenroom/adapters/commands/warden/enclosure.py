"""Walls as a process puts them around itself: after the fork, before it becomes the command. Whatever fails ends it."""

from __future__ import annotations

import base64
import ctypes
import os
import resource
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypedDict

from greenroom.adapters.commands.warden.bridge import Bridge
from greenroom.adapters.commands.warden.family import die_with_parent
from greenroom.adapters.commands.warden.landlock import Rules, restrict
from greenroom.adapters.commands.warden.stage import Placed, put_up
from greenroom.adapters.commands.warden.syscalls import (
    NO_NEW_PRIVILEGES,
    SECCOMP_FILTER,
    SET_SECCOMP,
    process_control,
)

LIMITS: Final = {
    "file_size": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
    "cpu_seconds": resource.RLIMIT_CPU,
}
INSTRUCTION: Final = 8
FIRST_TO_GO: Final = "1000"
"""When memory runs out, it is a command that the kernel ends, and nobody else."""


class Walls(TypedDict):
    """What the house asks for, as JSON can say it; see `Enclosed` in `core/ports/sandbox.py`."""

    uid: int | None
    gid: int | None
    cgroups: Sequence[str]
    rlimits: Mapping[str, int]
    tasks: int | None
    stage: str
    staged: Sequence[Placed]
    contents: Mapping[str, str]
    landlock: Rules | None
    seccomp: str
    outer: bool
    verdict: int | None
    bridge: Bridge | None


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def prepare(walls: Walls) -> None:
    """The slow part, before the command may go. `OSError` or `ValueError` where it cannot be done."""
    for procs in walls["cgroups"]:
        Path(procs).write_text(str(os.getpid()), encoding="ascii")
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO, encoding="ascii")
    if walls["stage"]:
        put_up(walls["stage"], walls["staged"], walls["uid"] or 0)


def enclose(walls: Walls) -> None:
    """Put them up. `OSError` or `ValueError` where one cannot be: then there is nothing to run."""
    _limit(walls["rlimits"], walls["tasks"])
    for number, content in walls["contents"].items():
        _open_as(int(number), base64.b64decode(content))
    if walls["uid"] is not None:
        _become(walls["uid"], walls["gid"] or walls["uid"])
    if walls["landlock"] is not None or walls["seccomp"]:
        process_control(NO_NEW_PRIVILEGES, 1)
    if walls["landlock"] is not None:
        restrict(walls["landlock"])
    if walls["seccomp"]:
        _filter(base64.b64decode(walls["seccomp"]))


def _limit(limits: Mapping[str, int], tasks: int | None) -> None:
    for name, value in limits.items():
        _lower(LIMITS[name], value)
    if tasks is not None:
        with suppress(OSError, ValueError, IndexError):
            # The limit counts all that one has on this machine, so what runs already comes on top.
            running = int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[2])
            _lower(resource.RLIMIT_NPROC, running + tasks)


def _lower(which: int, value: int) -> None:
    _, most = resource.getrlimit(which)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(which, (value, value))


def _open_as(number: int, content: bytes) -> None:
    """A file that has no name and lies in memory, open under this number."""
    memory = os.memfd_create("greenroom", 0)
    with open(memory, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(memory, 0, os.SEEK_SET)
    if memory != number:
        os.dup2(memory, number)
        os.close(memory)


def _become(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    die_with_parent(signal.SIGKILL)  # whoever becomes somebody else loses it


def _filter(program: bytes) -> None:
    process_control(SET_SECCOMP, SECCOMP_FILTER, _Program(len(program) // INSTRUCTION, program))
