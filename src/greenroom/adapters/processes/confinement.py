"""A sandbox as a process puts it around itself: after the fork, before it becomes the command. What fails ends it.

`put_up` makes folders reachable for somebody without rights on the way to them, in a view that only one process has. A
`Bridge` leads out of a sandbox without a network: a port inside, behind which somebody outside talks to a unix socket.
"""

from __future__ import annotations

import base64
import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import stat
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypedDict

from greenroom.adapters.processes.family import call, die_with_parent, process_control

# Numbers of system calls, the same on every machine, and of what they are told.
OPEN_TREE: Final = 428
MOVE_MOUNT: Final = 429
MOUNT_SETATTR: Final = 442
LANDLOCK_CREATE: Final = 444
LANDLOCK_ADD: Final = 445
LANDLOCK_RESTRICT: Final = 446

NEW_MOUNTS: Final = 0x0002_0000
NEW_USERS: Final = 0x1000_0000
NEW_NETWORK: Final = 0x4000_0000

NO_NEW_PRIVILEGES: Final = 38
SET_SECCOMP: Final = 22
SECCOMP_FILTER: Final = 2

PIECE: Final = 65_536
WAITING: Final = 64
CHILD: Final = "child-pid"
OWNING_USERS: Final = 0xB701


class Bridge(TypedDict):
    """See `core/ports/sandbox.py`."""

    port: int
    socket: str
    told: int
    gate: int


class BridgeBuilder:
    """Made before the fork, so that the command's process has its ends of the pipes."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._hears, self._told = os.pipe()
        self._gate, self._opens = os.pipe()

    def hand_over(self) -> None:
        """In the command's process: the outermost program tells us who is inside, and waits."""
        for number, source in ((self._bridge["told"], self._told), (self._bridge["gate"], self._gate)):
            os.dup2(source, number)
            os.set_inheritable(number, True)

    def begin(self) -> None:
        """In the guard: have somebody open the port and carry what comes, until the guard ends."""
        for number in (self._told, self._gate):
            os.close(number)
        me = os.getpid()
        if os.fork() == 0:
            try:
                self._serve(me)
            finally:
                os._exit(0)
        for number in (self._hears, self._opens):
            os.close(number)

    def _serve(self, guard: int) -> None:
        die_with_parent(signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if os.getppid() != guard:
            return
        ready, carries = socket.socketpair()
        inside = self._inside()
        if inside and os.fork() == 0:
            try:
                _open_port(inside, self._bridge["port"], ready)
            finally:
                os._exit(0)
        ready.close()
        _, handed, _, _ = socket.recv_fds(carries, 1, 1)
        os.write(self._opens, b".")
        if handed:
            _carry(socket.socket(fileno=handed[0]), self._bridge["socket"])

    def _inside(self) -> int:
        """The process in the namespaces; 0 when there is none."""
        told = b""
        while piece := os.read(self._hears, PIECE):
            told += piece
            with suppress(ValueError):
                return int(json.loads(told)[CHILD])
        return 0


def _open_port(inside: int, port: int, ready: socket.socket) -> None:
    """Go in, open the port, hand it out. Root may go anywhere; others first become whoever the network belongs to."""
    network = os.open(f"/proc/{inside}/ns/net", os.O_RDONLY)
    if os.geteuid() != 0:
        call("setns", fcntl.ioctl(network, OWNING_USERS), NEW_USERS)
    call("setns", network, NEW_NETWORK)
    with socket.create_server(("127.0.0.1", port), backlog=WAITING) as server:
        socket.send_fds(ready, [b"."], [server.fileno()])


def _carry(server: socket.socket, out: str) -> None:
    """Everything that connects, both ways, until we are ended."""
    while True:
        inner, _ = server.accept()
        outer = socket.socket(socket.AF_UNIX)
        try:
            outer.connect(out)
        except OSError:
            inner.close()
            outer.close()
            continue
        for one, other in ((inner, outer), (outer, inner)):
            threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(PIECE):
            other.sendall(data)
    with suppress(OSError):
        other.shutdown(socket.SHUT_WR)


HERE: Final = -100
CLONED: Final = 0x0008_0001  # OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC
RECURSIVE: Final = 0x8000
OF_DESCRIPTOR: Final = 0x1000
FROM_DESCRIPTOR: Final = 0x4
MAPPED: Final = 0x0010_0000
PRIVATE: Final = 0x0004_4000  # MS_PRIVATE | MS_REC
ALL_IDS: Final = 4_294_967_295


class Placed(TypedDict):
    """One folder or file, and where it is put."""

    source: str
    place: str
    owned: bool


class _Attributes(ctypes.Structure):
    """`struct mount_attr`."""

    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("users", ctypes.c_uint64),
    )


def put_up(stage: str, staged: Sequence[Placed], uid: int) -> None:
    """Take a view of our own and put them there. Sources are opened first: the stage may hide them.

    The kernel takes all of it down with the last process that has this view.
    """
    call("unshare", NEW_MOUNTS)
    call("mount", b"none", b"/", b"", PRIVATE, b"")
    users = _root_and(uid) if any(placed["owned"] for placed in staged) else -1
    trees = [_open_tree(placed, users) for placed in staged]
    call("mount", b"tmpfs", os.fsencode(stage), b"tmpfs", 0, b"mode=755,size=1m")
    for placed, tree in zip(staged, trees, strict=True):
        place = Path(stage, placed["place"])
        place.parent.mkdir(parents=True, exist_ok=True)
        if Path(f"/proc/self/fd/{tree}").is_dir():
            place.mkdir()
        else:
            place.touch()
        call("syscall", MOVE_MOUNT, tree, b"", HERE, os.fsencode(place), FROM_DESCRIPTOR)
        os.close(tree)
    if users >= 0:
        os.close(users)


def _open_tree(placed: Placed, users: int) -> int:
    flags = CLONED if placed["owned"] else CLONED | RECURSIVE
    tree = call("syscall", OPEN_TREE, HERE, os.fsencode(placed["source"]), flags)
    if placed["owned"]:
        # What belongs to root on the disk belongs to another one in this view, and the other way round.
        change = _Attributes(MAPPED, 0, 0, users)
        call("syscall", MOUNT_SETATTR, tree, b"", OF_DESCRIPTOR, change, ctypes.sizeof(change))
    return tree


def _root_and(uid: int) -> int:
    """A user namespace in which root and this one have changed places; nobody is in it."""
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            call("unshare", NEW_USERS)
            os.write(ready[1], b".")
            os.close(done[1])
            os.read(done[0], 1)
        finally:
            os._exit(0)
    os.close(ready[1])
    try:
        if os.read(ready[0], 1):
            swapped = f"0 {uid} 1\n1 1 {uid - 1}\n{uid} 0 1\n{uid + 1} {uid + 1} {ALL_IDS - uid - 1}\n"
            for kind in ("uid", "gid"):
                Path(f"/proc/{child}/{kind}_map").write_text(swapped, encoding="ascii")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for number in (*done, ready[0]):
            os.close(number)
        os.waitpid(child, 0)


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
    ruleset = call("syscall", LANDLOCK_CREATE, known, size, 0)
    for path, rights in rules["rules"]:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        folder = stat.S_ISDIR(os.fstat(place).st_mode)
        beneath = _Beneath(rights if folder else rights & OF_FILES, place)
        call("syscall", LANDLOCK_ADD, ruleset, PATH_BENEATH, beneath, 0)
        os.close(place)
    call("syscall", LANDLOCK_RESTRICT, ruleset, 0)
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
    """What Greenroom asks for, as JSON can say it; see `Enclosed` in `core/ports/sandbox.py`."""

    uid: int | None
    gid: int | None
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
    call("capset", _Header(CAPABILITY_VERSION, 0), _Capabilities())


def install_filter(program: bytes) -> None:
    """A filter of system calls, from now on."""
    process_control(SET_SECCOMP, SECCOMP_FILTER, _Program(len(program) // INSTRUCTION, program))
