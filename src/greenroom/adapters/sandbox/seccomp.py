"""The system call filter: which calls a command cannot make, as a classic BPF program for the kernel."""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

LAST_KNOWN_CALL: Final = 470
"""The last call that this filter knows. Higher numbers are refused."""

CALL_NUMBERS: Final = """\
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
openat 257 56, mkdirat 258 34, mknodat 259 33, fchmodat 268 53, unshare 272 97, fallocate 285 47, accept4 288 242,
perf_event_open 298 241, fanotify_init 300 262, prlimit64 302 261, open_by_handle_at 304 265,
clock_adjtime 305 266, setns 308 268, process_vm_readv 310 270, process_vm_writev 311 271, kcmp 312 272,
finit_module 313 273, kexec_file_load 320 294, bpf 321 280, userfaultfd 323 282"""
"""The numbers of each call on x86_64 and aarch64."""


@record
class Machine:
    """A machine type. `audit` is its number in the kernel. A call with a bit of `foreign` belongs to another ABI."""

    audit: int
    calls: Mapping[str, int]
    foreign: int = 0


def _parse_call_numbers(column: int) -> dict[str, int]:
    rows = [row.split() for row in CALL_NUMBERS.replace("\n", " ").split(",")]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


MACHINES: Final[Mapping[str, Machine]] = {
    "x86_64": Machine(audit=0xC000_003E, calls=_parse_call_numbers(1), foreign=0x4000_0000),
    "aarch64": Machine(audit=0xC000_00B7, calls=_parse_call_numbers(2)),
}

REFUSED_CALLS: Final = (
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
NETWORK_CALLS: Final = ("connect", "bind", "listen", "accept", "accept4")
"""Calls to refuse when a command has no network namespace."""

SHARED_MEMORY_CALLS: Final = (
    *("shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl"),
    *("mq_open", "mq_unlink"),
)
"""Calls for memory and messages that all programs share. They are refused without an IPC namespace."""

ATTRIBUTE_CALLS: Final = (
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
)
"""Calls for file attributes, which Landlock does not cover. Programs work without them, as on file systems that have
none."""

PROCESS_ARGUMENTS: Final = {"setpriority": 1, "prlimit64": 0}
"""Which argument names a process; 0 is the caller."""

PRIO_USER: Final = 2
"""Selects all processes of a user, instead of a process or group."""

UNFILTERABLE_CALLS: Final = ("clone3", "openat2")
"""Calls whose arguments are in memory, where no filter can check them. Programs fall back as on an older kernel."""

NEW_NAMESPACES: Final = 0x7E02_0000
SET_ID_BITS: Final = 0o6000
"""A set-id program would run with its owner's rights for other users of this machine."""

MODE_ARGUMENTS: Final = {
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
"""Which argument is the mode of a file."""

OPEN_FLAG_ARGUMENTS: Final = {"open": 1, "openat": 2}
"""Which argument holds the open flags. The next one is the mode, if the file is created."""

CREATE_FLAGS: Final = 0o20_000_100  # O_CREAT, O_TMPFILE

TERMINAL_REQUESTS: Final = (0x5412, 0x541C, 0x5423)
"""Requests that type or paste into a terminal, or change its settings."""

AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SOCK_STREAM, SOCK_SEQPACKET = 1, 5
PERSONALITIES: Final = (0, 0x8, 0x2_0000, 0xFFFF_FFFF)

BPF_LOAD: Final = 0x20
BPF_JUMP_EQUAL: Final = 0x15
BPF_JUMP_ABOVE: Final = 0x25
BPF_JUMP_BITS: Final = 0x45
BPF_AND: Final = 0x54
BPF_RETURN: Final = 0x06
SECCOMP_ALLOW: Final = 0x7FFF_0000
SECCOMP_ERRNO: Final = 0x0005_0000
CALL_NUMBER_OFFSET: Final = 0
ARCHITECTURE_OFFSET: Final = 4
ARGUMENTS_OFFSET: Final = 16


@record
class BpfInstruction:
    """One BPF instruction: its code, its value, and how many to skip if it matches (`yes`) or not (`no`)."""

    code: int
    value: int
    yes: int = 0
    no: int = 0


def build_filter(*, network: bool, machine: str = "") -> bytes:
    """Build the filter for this machine. With `network`, a command has its own network namespace and may use it."""
    name = machine or platform.machine()
    if name not in MACHINES:
        raise WorldFault("sandbox.no_syscall_filter", name=name)
    known = MACHINES[name]
    steps = [
        BpfInstruction(code=BPF_LOAD, value=ARCHITECTURE_OFFSET),
        *(BpfInstruction(code=BPF_JUMP_EQUAL, value=known.audit, yes=1), _refuse(errno.EPERM)),
        BpfInstruction(code=BPF_LOAD, value=CALL_NUMBER_OFFSET),
        *(_refuse_if(BPF_JUMP_BITS, known.foreign, errno.EPERM) if known.foreign else ()),
        *_refuse_if(BPF_JUMP_ABOVE, LAST_KNOWN_CALL, errno.ENOSYS),
        *_filter_calls(known, network=network),
        *_filter_arguments(known.calls, network=network),
        BpfInstruction(code=BPF_RETURN, value=SECCOMP_ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", step.code, step.yes, step.no, step.value) for step in steps)


def _filter_calls(known: Machine, *, network: bool) -> Iterator[BpfInstruction]:
    refused = REFUSED_CALLS if network else (*REFUSED_CALLS, *NETWORK_CALLS, *SHARED_MEMORY_CALLS)
    for name in refused:
        if name in known.calls:
            yield from _refuse_if(BPF_JUMP_EQUAL, known.calls[name], errno.EPERM)
    for name in ("fallocate",) if network else ("fallocate", *ATTRIBUTE_CALLS):  # it would fill a quota in one call
        yield from _refuse_if(BPF_JUMP_EQUAL, known.calls[name], errno.EOPNOTSUPP)
    for name in UNFILTERABLE_CALLS:
        yield from _refuse_if(BPF_JUMP_EQUAL, known.calls[name], errno.ENOSYS)


def _filter_arguments(calls: Mapping[str, int], *, network: bool) -> Iterator[BpfInstruction]:
    yield from _filter_argument(calls["clone"], 0, _refuse_if(BPF_JUMP_BITS, NEW_NAMESPACES, errno.EPERM))
    for name, at in MODE_ARGUMENTS.items():
        if name in calls:
            yield from _filter_argument(calls[name], at, _refuse_if(BPF_JUMP_BITS, SET_ID_BITS, errno.EPERM))
    for name, at in OPEN_FLAG_ARGUMENTS.items():
        if name in calls:
            mode = [
                BpfInstruction(code=BPF_LOAD, value=ARGUMENTS_OFFSET + 8 * (at + 1)),
                *_refuse_if(BPF_JUMP_BITS, SET_ID_BITS, errno.EPERM),
            ]
            yield from _filter_argument(
                calls[name], at, [BpfInstruction(code=BPF_JUMP_BITS, value=CREATE_FLAGS, no=len(mode)), *mode]
            )
    terminal = [step for request in TERMINAL_REQUESTS for step in _refuse_if(BPF_JUMP_EQUAL, request, errno.EPERM)]
    yield from _filter_argument(calls["ioctl"], 1, terminal)
    families = (AF_UNIX, AF_INET, AF_INET6) if network else (AF_UNIX,)
    yield from _filter_argument(calls["socket"], 0, _refuse_unless(families, errno.EAFNOSUPPORT))
    yield from _filter_argument(calls["personality"], 0, _refuse_unless(PERSONALITIES, errno.EPERM))
    if not network:
        # A datagram socket reaches others without a connection.
        kinds = [BpfInstruction(code=BPF_AND, value=0xF), *_refuse_unless((SOCK_STREAM, SOCK_SEQPACKET), errno.EPERM)]
        for name in ("socket", "socketpair"):
            yield from _filter_argument(calls[name], 1, kinds)
        for name, at in PROCESS_ARGUMENTS.items():
            yield from _filter_argument(calls[name], at, _refuse_unless((0,), errno.EPERM))
        yield from _filter_argument(calls["setpriority"], 0, _refuse_if(BPF_JUMP_EQUAL, PRIO_USER, errno.EPERM))


def _refuse_if(test: int, value: int, error: int) -> list[BpfInstruction]:
    return [BpfInstruction(code=test, value=value, no=1), _refuse(error)]


def _refuse_unless(values: Sequence[int], error: int) -> list[BpfInstruction]:
    """Refuse every value except these."""
    tests = [BpfInstruction(code=BPF_JUMP_EQUAL, value=value, yes=len(values) - at) for at, value in enumerate(values)]
    return [*tests, _refuse(error)]


def _refuse(error: int) -> BpfInstruction:
    return BpfInstruction(code=BPF_RETURN, value=SECCOMP_ERRNO | error)


def _filter_argument(number: int, argument: int, steps: Sequence[BpfInstruction]) -> list[BpfInstruction]:
    """Apply steps to an argument of a call, then load the call number again."""
    load = BpfInstruction(code=BPF_LOAD, value=ARGUMENTS_OFFSET + 8 * argument)
    return [
        BpfInstruction(code=BPF_JUMP_EQUAL, value=number, no=len(steps) + 2),
        load,
        *steps,
        BpfInstruction(code=BPF_LOAD, value=CALL_NUMBER_OFFSET),
    ]
