"""The filter of system calls: which ones a command cannot make, as a program for the kernel (classic BPF)."""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

HIGHEST: Final = 470
"""Calls above it are newer than this filter."""

NUMBERS: Final = """\
io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427, open_tree 428 428, move_mount 429 429,
fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433, clone3 435 435, openat2 437 437,
pidfd_getfd 438 438, mount_setattr 442 442, quotactl_fd 443 443, fchmodat2 452 452, statmount 457 457,
listmount 458 458, setxattrat 463 463, removexattrat 466 466, open_tree_attr 467 467, open 2 -, ioctl 16 29,
shmget 29 194, shmat 30 196, shmctl 31 195, socket 41 198, connect 42 203, accept 43 202, bind 49 200,
listen 50 201, socketpair 53 199, clone 56 220, semget 64 190, semop 65 193, semctl 66 191, msgget 68 186,
msgsnd 69 189, msgrcv 70 188, msgctl 71 187, mkdir 83 -, creat 85 -, chmod 90 -, fchmod 91 52, ptrace 101 117,
syslog 103 116, mknod 133 -, uselib 134 -, personality 135 92, ustat 136 -, sysfs 139 -, setpriority 141 140,
vhangup 153 58, modify_ldt 154 -, pivot_root 155 41, _sysctl 156 -, adjtimex 159 171, chroot 161 51, acct 163 89,
settimeofday 164 170, mount 165 40, umount2 166 39, swapon 167 224, swapoff 168 225, reboot 169 142,
sethostname 170 161, setdomainname 171 162, iopl 172 -, ioperm 173 -, init_module 175 105, delete_module 176 106,
quotactl 179 60, nfsservctl 180 42, setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, removexattr 197 14,
lremovexattr 198 15, fremovexattr 199 16, lookup_dcookie 212 18, semtimedop 220 192, clock_settime 227 112,
mq_open 240 180, mq_unlink 241 181, kexec_load 246 104, add_key 248 217, request_key 249 218, keyctl 250 219,
openat 257 56, mkdirat 258 34, mknodat 259 33, fchmodat 268 53, unshare 272 97, accept4 288 242,
perf_event_open 298 241, fanotify_init 300 262, prlimit64 302 261, open_by_handle_at 304 265,
clock_adjtime 305 266, setns 308 268, process_vm_readv 310 270, process_vm_writev 311 271, kcmp 312 272,
finit_module 313 273, kexec_file_load 320 294, bpf 321 280, userfaultfd 323 282"""
"""Each call with its number on x86_64 and on aarch64."""


@record
class Machine:
    """`audit` is how the kernel calls it; calls with a bit of `foreign` are those of another one."""

    audit: int
    calls: Mapping[str, int]
    foreign: int = 0


def _numbers(column: int) -> dict[str, int]:
    rows = [row.split() for row in NUMBERS.replace("\n", " ").split(",")]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


MACHINES: Final[Mapping[str, Machine]] = {
    "x86_64": Machine(audit=0xC000_003E, calls=_numbers(1), foreign=0x4000_0000),
    "aarch64": Machine(audit=0xC000_00B7, calls=_numbers(2)),
}

REFUSED: Final = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd"),  # other processes
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),  # calls that no filter sees
    *("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "fanotify_init"),
    *("mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount"),
    *("fspick", "mount_setattr", "open_tree_attr", "statmount", "listmount", "unshare", "setns"),
    *("open_by_handle_at", "lookup_dcookie", "quotactl", "quotactl_fd", "nfsservctl", "acct", "swapon", "swapoff"),
    *("reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "syslog"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname"),
    *("iopl", "ioperm", "modify_ldt", "vhangup", "uselib", "ustat", "sysfs", "_sysctl"),
)
WITHOUT_NETWORK: Final = ("connect", "bind", "listen", "accept", "accept4")
"""Where there is no network of its own to be kept in, nobody is reached at all."""

WITHOUT_SPACES: Final = (
    *("shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl"),
    *("mq_open", "mq_unlink"),
)
"""Memory and messages that all programs of a machine share, where there is no such space of its own."""

ATTRIBUTES: Final = (
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
)
"""What Landlock does not know of. Programs do without, as on file systems that have none."""

OF_OTHERS: Final = {"setpriority": 1, "prlimit64": 0}
"""Which argument names a process; 0 is whoever asks."""

EVERYBODY: Final = 2
"""Not one process, nor a group: all that a person runs."""

UNKNOWN: Final = ("clone3", "openat2")
"""Calls whose arguments lie in memory, where no filter looks: programs know what to do on a kernel without them."""

NEW_NAMESPACES: Final = 0x7E02_0000
SET_ID: Final = 0o6000
"""A program that runs as whoever it belongs to would be one for the others on this machine."""

MODES: Final = {
    "chmod": 1,
    "fchmod": 1,
    "fchmodat": 2,
    "fchmodat2": 2,
    "creat": 1,
    "mknod": 1,
    "mknodat": 2,
    "mkdir": 1,
    "mkdirat": 2,
}
"""Which argument says what may be done with a file."""

OPENS: Final = {"open": 1, "openat": 2}
"""Which one says how it is opened; the next says what may be done with it, but only if it is made."""

MAKES: Final = 0o20_000_100  # O_CREAT, O_TMPFILE

TERMINAL: Final = (0x5412, 0x541C, 0x5423)
"""Typing into a terminal, pasting into one, changing its rules."""

UNIX, INET, INET6 = 1, 2, 10
STREAM, PACKETS = 1, 5
PERSONALITIES: Final = (0, 0x8, 0x2_0000, 0xFFFF_FFFF)

LOAD: Final = 0x20
EQUAL: Final = 0x15
ABOVE: Final = 0x25
BITS: Final = 0x45
MASK: Final = 0x54
RETURN: Final = 0x06
ALLOW: Final = 0x7FFF_0000
SAY: Final = 0x0005_0000
NUMBER: Final = 0
ARCHITECTURE: Final = 4
ARGUMENTS: Final = 16


@record
class Step:
    """One instruction: what, on which value, and how many to go over if so (`yes`) or not (`no`)."""

    code: int
    value: int
    yes: int = 0
    no: int = 0


def seccomp(*, network: bool, machine: str = "") -> bytes:
    """The filter for this machine; `network` says that a command has one of its own, and may use that."""
    name = machine or platform.machine()
    if name not in MACHINES:
        raise WorldFault(f"There is no filter of system calls for a machine {name!r}, so no walls can be put up here.")
    known = MACHINES[name]
    steps = [
        Step(code=LOAD, value=ARCHITECTURE),
        *(Step(code=EQUAL, value=known.audit, yes=1), _refuse(errno.EPERM)),
        Step(code=LOAD, value=NUMBER),
        *(_if(BITS, known.foreign, errno.EPERM) if known.foreign else ()),
        *_if(ABOVE, HIGHEST, errno.ENOSYS),
        *_about_calls(known, network=network),
        *_about_arguments(known.calls, network=network),
        Step(code=RETURN, value=ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", one.code, one.yes, one.no, one.value) for one in steps)


def _about_calls(known: Machine, *, network: bool) -> Iterator[Step]:
    refused = REFUSED if network else (*REFUSED, *WITHOUT_NETWORK, *WITHOUT_SPACES)
    for name in refused:
        if name in known.calls:
            yield from _if(EQUAL, known.calls[name], errno.EPERM)
    for name in () if network else ATTRIBUTES:
        yield from _if(EQUAL, known.calls[name], errno.EOPNOTSUPP)
    for name in UNKNOWN:
        yield from _if(EQUAL, known.calls[name], errno.ENOSYS)


def _about_arguments(calls: Mapping[str, int], *, network: bool) -> Iterator[Step]:
    yield from _looking_at(calls["clone"], 0, _if(BITS, NEW_NAMESPACES, errno.EPERM))
    for name, at in MODES.items():
        if name in calls:
            yield from _looking_at(calls[name], at, _if(BITS, SET_ID, errno.EPERM))
    for name, at in OPENS.items():
        if name in calls:
            mode = [Step(code=LOAD, value=ARGUMENTS + 8 * (at + 1)), *_if(BITS, SET_ID, errno.EPERM)]
            yield from _looking_at(calls[name], at, [Step(code=BITS, value=MAKES, no=len(mode)), *mode])
    terminal = [step for one in TERMINAL for step in _if(EQUAL, one, errno.EPERM)]
    yield from _looking_at(calls["ioctl"], 1, terminal)
    families = (UNIX, INET, INET6) if network else (UNIX,)
    yield from _looking_at(calls["socket"], 0, _only(families, errno.EAFNOSUPPORT))
    yield from _looking_at(calls["personality"], 0, _only(PERSONALITIES, errno.EPERM))
    if not network:
        # One that sends single messages needs no connection to reach somebody.
        kinds = [Step(code=MASK, value=0xF), *_only((STREAM, PACKETS), errno.EPERM)]
        for name in ("socket", "socketpair"):
            yield from _looking_at(calls[name], 1, kinds)
        for name, at in OF_OTHERS.items():
            yield from _looking_at(calls[name], at, _only((0,), errno.EPERM))
        yield from _looking_at(calls["setpriority"], 0, _if(EQUAL, EVERYBODY, errno.EPERM))


def _if(test: int, value: int, error: int) -> list[Step]:
    return [Step(code=test, value=value, no=1), _refuse(error)]


def _only(values: Sequence[int], error: int) -> list[Step]:
    """Everything but these is refused."""
    tests = [Step(code=EQUAL, value=one, yes=len(values) - at) for at, one in enumerate(values)]
    return [*tests, _refuse(error)]


def _refuse(error: int) -> Step:
    return Step(code=RETURN, value=SAY | error)


def _looking_at(number: int, argument: int, steps: Sequence[Step]) -> list[Step]:
    """These steps on an argument of this call; afterwards the call's number is at hand again."""
    look = Step(code=LOAD, value=ARGUMENTS + 8 * argument)
    return [
        Step(code=EQUAL, value=number, no=len(steps) + 2),
        look,
        *steps,
        Step(code=LOAD, value=NUMBER),
    ]
