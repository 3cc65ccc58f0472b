"""A sandbox as a process puts it around itself: after the fork, before it becomes the command. What fails ends it."""

from __future__ import annotations

import base64
import ctypes
import os
import resource
import signal
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypedDict

from greenroom.adapters.commands.warden.bridge import Bridge
from greenroom.adapters.commands.warden.family import die_with_parent
from greenroom.adapters.commands.warden.stage import Placed, put_up
from greenroom.adapters.commands.warden.syscalls import (
    LANDLOCK_ADD,
    LANDLOCK_CREATE,
    LANDLOCK_RESTRICT,
    NO_NEW_PRIVILEGES,
    SECCOMP_FILTER,
    SET_SECCOMP,
    process_control,
    set_capabilities,
    system_call,
)

PATH_BENEATH: Final = 1
OF_FILES: Final = 0b1100_0000_0000_0111
"""Rights that a file can have; the others are those of folders."""


class Rules(TypedDict):
    """What is forbidden, but for what the rules let."""

    files: int
    network: int
    scopes: int
    rules: Sequence[tuple[str, int]]


class _Ruleset(ctypes.Structure):
    """`struct landlock_ruleset_attr`."""

    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    """`struct landlock_path_beneath_attr`."""

    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def restrict(rules: Rules) -> None:
    """From now on. What is not there cannot be let."""
    known = _Ruleset(rules["files"], rules["network"], rules["scopes"])
    # A kernel that is older than a field takes the structure without it, as long as it would be empty.
    size = 24 if rules["scopes"] else 16 if rules["network"] else 8
    ruleset = system_call(LANDLOCK_CREATE, known, size, 0)
    for path, rights in rules["rules"]:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        folder = stat.S_ISDIR(os.fstat(place).st_mode)
        beneath = _Beneath(rights if folder else rights & OF_FILES, place)
        system_call(LANDLOCK_ADD, ruleset, PATH_BENEATH, beneath, 0)
        os.close(place)
    system_call(LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


LIMITS: Final = {
    "file_size": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
    "cpu_seconds": resource.RLIMIT_CPU,
}
INSTRUCTION: Final = 8
LAST_CAPABILITY: Final = int(Path("/proc/sys/kernel/cap_last_cap").read_text()) if sys.platform == "linux" else 0
DROP_FROM_BOUNDING: Final = 24
SET_SECURE_BITS: Final = 28
NO_ROOT_AND_LOCKED: Final = 0b1110_1111
AMBIENT: Final = 47
CLEAR_ALL: Final = 4
CAPABILITY_VERSION: Final = 0x2008_0522
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


class _Header(ctypes.Structure):
    """`struct __user_cap_header_struct`."""

    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Capabilities(ctypes.Structure):
    """Two `struct __user_cap_data_struct`: effective, permitted and inheritable ones."""

    _fields_ = (("words", ctypes.c_uint32 * 6),)


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
        install_filter(base64.b64decode(walls["seccomp"]))


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
    if uid == 0:
        _drop_capabilities()
    os.setresuid(uid, uid, uid)
    die_with_parent(signal.SIGKILL)  # a process that becomes another user loses it


def _drop_capabilities() -> None:
    """Root without any capability, for good: a program that it starts gets none either."""
    process_control(NO_NEW_PRIVILEGES, 1)
    with suppress(OSError):  # only who may change capabilities may, and needs to, close these ways
        for number in range(LAST_CAPABILITY + 1):
            process_control(DROP_FROM_BOUNDING, number)
        process_control(SET_SECURE_BITS, NO_ROOT_AND_LOCKED)
    process_control(AMBIENT, CLEAR_ALL)
    set_capabilities(_Header(CAPABILITY_VERSION, 0), _Capabilities())


def install_filter(program: bytes) -> None:
    """A filter of system calls, from now on."""
    process_control(SET_SECCOMP, SECCOMP_FILTER, _Program(len(program) // INSTRUCTION, program))
