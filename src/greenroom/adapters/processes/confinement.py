"""Apply a sandbox to the current process: after the fork and before the command. Any failure ends the process.

`mount_stage` makes folders reachable for a user without rights to their parents, in a private mount namespace. An
`EgressBridge` leads out of a sandbox without a network: a port inside is relayed to a unix socket outside.
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

from greenroom.adapters.processes.process_tree import call_libc, die_with_parent, process_control

# Numbers of system calls, the same on every machine, and their flags.
OPEN_TREE: Final = 428
MOVE_MOUNT: Final = 429
MOUNT_SETATTR: Final = 442
LANDLOCK_CREATE: Final = 444
LANDLOCK_ADD: Final = 445
LANDLOCK_RESTRICT: Final = 446

NEW_MOUNT_NAMESPACE: Final = 0x0002_0000
NEW_USER_NAMESPACE: Final = 0x1000_0000
NEW_NETWORK_NAMESPACE: Final = 0x4000_0000

NO_NEW_PRIVILEGES: Final = 38
SET_SECCOMP: Final = 22
SECCOMP_FILTER: Final = 2

CHUNK_BYTES: Final = 65_536
MAX_PENDING_CONNECTIONS: Final = 64
GET_USER_NAMESPACE: Final = 0xB701


class EgressBridgeJson(TypedDict):
    """The JSON form of `EgressBridge` in `core/ports/sandbox.py`."""

    port: int
    socket: str
    info: int
    gate: int


class BridgeBuilder:
    """Builds the bridge to the egress proxy. Create it before the fork, so that both processes share its pipes."""

    def __init__(self, bridge: EgressBridgeJson) -> None:
        self._bridge = bridge
        self._info_read, self._info_write = os.pipe()
        self._gate_read, self._gate_write = os.pipe()

    def hand_over(self) -> None:
        """Pass the pipes to bubblewrap, in the command's process. It reports the inner pid and waits."""
        for number, source in ((self._bridge["info"], self._info_write), (self._bridge["gate"], self._gate_read)):
            os.dup2(source, number)
            os.set_inheritable(number, True)

    def start(self) -> None:
        """Fork a process that opens the port and relays data until the command's supervisor ends."""
        for number in (self._info_write, self._gate_read):
            os.close(number)
        supervisor_pid = os.getpid()
        if os.fork() == 0:
            try:
                self._serve(supervisor_pid)
            finally:
                os._exit(0)
        for number in (self._info_read, self._gate_write):
            os.close(number)

    def _serve(self, supervisor_pid: int) -> None:
        die_with_parent(signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if os.getppid() != supervisor_pid:
            return
        ready, relay = socket.socketpair()
        inside = self._read_inner_pid()
        if inside and os.fork() == 0:
            try:
                _open_port(inside, self._bridge["port"], ready)
            finally:
                os._exit(0)
        ready.close()
        _, handed, _, _ = socket.recv_fds(relay, 1, 1)
        os.write(self._gate_write, b".")
        if handed:
            _relay_connections(socket.socket(fileno=handed[0]), self._bridge["socket"])

    def _read_inner_pid(self) -> int:
        """Return the pid inside the namespaces; 0 if there is none."""
        info = b""
        while piece := os.read(self._info_read, CHUNK_BYTES):
            info += piece
            with suppress(ValueError):
                return int(json.loads(info)["child-pid"])
        return 0


def _open_port(pid: int, port: int, ready: socket.socket) -> None:
    """Enter the network namespace, open the port and hand it out. Without root, enter its user namespace first."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if os.geteuid() != 0:
        call_libc("setns", fcntl.ioctl(network, GET_USER_NAMESPACE), NEW_USER_NAMESPACE)
    call_libc("setns", network, NEW_NETWORK_NAMESPACE)
    with socket.create_server(("127.0.0.1", port), backlog=MAX_PENDING_CONNECTIONS) as server:
        socket.send_fds(ready, [b"."], [server.fileno()])


def _relay_connections(server: socket.socket, egress_socket: str) -> None:
    """Relay all connections in both directions."""
    while True:
        inner, _ = server.accept()
        outer = socket.socket(socket.AF_UNIX)
        try:
            outer.connect(egress_socket)
        except OSError:
            inner.close()
            outer.close()
            continue
        for source, target in ((inner, outer), (outer, inner)):
            threading.Thread(target=_relay_data, args=(source, target), daemon=True).start()


def _relay_data(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


AT_FDCWD: Final = -100
OPEN_TREE_FLAGS: Final = 0x0008_0001  # OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC
AT_RECURSIVE: Final = 0x8000
AT_EMPTY_PATH: Final = 0x1000
MOVE_MOUNT_F_EMPTY_PATH: Final = 0x4
MOUNT_ATTR_IDMAP: Final = 0x0010_0000
MAKE_PRIVATE: Final = 0x0004_4000  # MS_PRIVATE | MS_REC
MAX_ID: Final = 4_294_967_295


class StagedPathJson(TypedDict):
    """A folder or file and its place on the stage."""

    source: str
    place: str
    owned: bool


class _MountAttributes(ctypes.Structure):
    """`struct mount_attr`."""

    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("users", ctypes.c_uint64),
    )


def mount_stage(stage: str, staged: Sequence[StagedPathJson], uid: int) -> None:
    """Create a mount namespace and mount the paths on the stage. Sources are opened first, because the stage may hide
    them.

    The kernel removes the mounts with the last process in the namespace.
    """
    call_libc("unshare", NEW_MOUNT_NAMESPACE)
    call_libc("mount", b"none", b"/", b"", MAKE_PRIVATE, b"")
    users = _open_swapped_namespace(uid) if any(placed["owned"] for placed in staged) else -1
    trees = [_open_tree(placed, users) for placed in staged]
    call_libc("mount", b"tmpfs", os.fsencode(stage), b"tmpfs", 0, b"mode=755,size=1m")
    for placed, tree in zip(staged, trees, strict=True):
        place = Path(stage, placed["place"])
        place.parent.mkdir(parents=True, exist_ok=True)
        if Path(f"/proc/self/fd/{tree}").is_dir():
            place.mkdir()
        else:
            place.touch()
        call_libc("syscall", MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(place), MOVE_MOUNT_F_EMPTY_PATH)
        os.close(tree)
    if users >= 0:
        os.close(users)


def _open_tree(placed: StagedPathJson, users: int) -> int:
    flags = OPEN_TREE_FLAGS if placed["owned"] else OPEN_TREE_FLAGS | AT_RECURSIVE
    tree = call_libc("syscall", OPEN_TREE, AT_FDCWD, os.fsencode(placed["source"]), flags)
    if placed["owned"]:
        # Files of root on the disk belong to the other user in this namespace, and vice versa.
        change = _MountAttributes(MOUNT_ATTR_IDMAP, 0, 0, users)
        call_libc("syscall", MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, change, ctypes.sizeof(change))
    return tree


def _open_swapped_namespace(uid: int) -> int:
    """Return a user namespace that swaps root and this user. No process is in it."""
    ready, release = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            call_libc("unshare", NEW_USER_NAMESPACE)
            os.write(ready[1], b".")
            os.close(release[1])
            os.read(release[0], 1)
        finally:
            os._exit(0)
    os.close(ready[1])
    try:
        if os.read(ready[0], 1):
            swapped = f"0 {uid} 1\n1 1 {uid - 1}\n{uid} 0 1\n{uid + 1} {uid + 1} {MAX_ID - uid - 1}\n"
            for kind in ("uid", "gid"):
                Path(f"/proc/{child}/{kind}_map").write_text(swapped, encoding="ascii")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for number in (*release, ready[0]):
            os.close(number)
        os.waitpid(child, 0)


PATH_BENEATH: Final = 1
FILE_RIGHTS: Final = 0b1100_0000_0000_0111
"""Rights that apply to files; the others apply to folders."""


class LandlockRulesetJson(TypedDict):
    """Everything that is forbidden, and the rules with exceptions."""

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


def apply_landlock(rules: LandlockRulesetJson) -> None:
    """Restrict the current process. Rules for missing paths are skipped."""
    attributes = _Ruleset(rules["files"], rules["network"], rules["scopes"])
    # An older kernel accepts the structure without the newer fields, if they are empty.
    size = 24 if rules["scopes"] else 16 if rules["network"] else 8
    ruleset = call_libc("syscall", LANDLOCK_CREATE, attributes, size, 0)
    for path, rights in rules["rules"]:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        folder = stat.S_ISDIR(os.fstat(place).st_mode)
        beneath = _Beneath(rights if folder else rights & FILE_RIGHTS, place)
        call_libc("syscall", LANDLOCK_ADD, ruleset, PATH_BENEATH, beneath, 0)
        os.close(place)
    call_libc("syscall", LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


RLIMITS: Final = {
    "file_size": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
    "cpu_seconds": resource.RLIMIT_CPU,
}
INSTRUCTION_BYTES: Final = 8
LAST_CAPABILITY: Final = int(Path("/proc/sys/kernel/cap_last_cap").read_text()) if sys.platform == "linux" else 0
DROP_FROM_BOUNDING: Final = 24
SET_SECURE_BITS: Final = 28
NO_ROOT_AND_LOCKED: Final = 0b1110_1111
AMBIENT_CAPABILITIES: Final = 47
CLEAR_ALL: Final = 4
CAPABILITY_VERSION: Final = 0x2008_0522
OOM_SCORE: Final = "1000"
"""The kernel ends commands first when memory runs out."""


class SandboxJson(TypedDict):
    """The JSON form of `SandboxedCommand` in `core/ports/sandbox.py`."""

    uid: int | None
    gid: int | None
    rlimits: Mapping[str, int]
    tasks: int | None
    stage: str
    staged: Sequence[StagedPathJson]
    contents: Mapping[str, str]
    landlock: LandlockRulesetJson | None
    seccomp: str
    outer: bool
    signal_fd: int | None
    bridge: EgressBridgeJson | None


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


class _Header(ctypes.Structure):
    """`struct __user_cap_header_struct`."""

    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Capabilities(ctypes.Structure):
    """Two `struct __user_cap_data_struct`: effective, permitted and inheritable capabilities."""

    _fields_ = (("words", ctypes.c_uint32 * 6),)


def prepare(sandbox: SandboxJson) -> None:
    """Do the slow part before the command may start. Raise `OSError` or `ValueError` if it fails."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, encoding="ascii")
    if sandbox["stage"]:
        mount_stage(sandbox["stage"], sandbox["staged"], sandbox["uid"] or 0)


def apply_sandbox(sandbox: SandboxJson) -> None:
    """Apply the sandbox. Raise `OSError` or `ValueError` if a part fails; then the command must not run."""
    _set_limits(sandbox["rlimits"], sandbox["tasks"])
    for number, content in sandbox["contents"].items():
        _open_memory_file(int(number), base64.b64decode(content))
    if sandbox["uid"] is not None:
        _switch_user(sandbox["uid"], sandbox["gid"] or sandbox["uid"])
    if sandbox["landlock"] is not None or sandbox["seccomp"]:
        process_control(NO_NEW_PRIVILEGES, 1)
    if sandbox["landlock"] is not None:
        apply_landlock(sandbox["landlock"])
    if sandbox["seccomp"]:
        install_filter(base64.b64decode(sandbox["seccomp"]))


def _set_limits(limits: Mapping[str, int], tasks: int | None) -> None:
    for name, value in limits.items():
        _lower_limit(RLIMITS[name], value)
    if tasks is not None:
        with suppress(OSError, ValueError, IndexError):
            # The limit counts all processes of the user, so add those that already run.
            running = int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[2])
            _lower_limit(resource.RLIMIT_NPROC, running + tasks)


def _lower_limit(which: int, value: int) -> None:
    _, hard_limit = resource.getrlimit(which)
    value = value if hard_limit == resource.RLIM_INFINITY else min(value, hard_limit)
    resource.setrlimit(which, (value, value))


def _open_memory_file(number: int, content: bytes) -> None:
    """Open an unnamed file in memory under this descriptor."""
    memory = os.memfd_create("greenroom", 0)
    with open(memory, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(memory, 0, os.SEEK_SET)
    if memory != number:
        os.dup2(memory, number)
        os.close(memory)


def _switch_user(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    if uid == 0:
        _drop_capabilities()
    os.setresuid(uid, uid, uid)
    die_with_parent(signal.SIGKILL)  # switching the user resets it


def _drop_capabilities() -> None:
    """Drop all capabilities of root permanently, also for programs that it starts."""
    process_control(NO_NEW_PRIVILEGES, 1)
    with suppress(OSError):  # only possible, and only needed, with the right to change capabilities
        for number in range(LAST_CAPABILITY + 1):
            process_control(DROP_FROM_BOUNDING, number)
        process_control(SET_SECURE_BITS, NO_ROOT_AND_LOCKED)
    process_control(AMBIENT_CAPABILITIES, CLEAR_ALL)
    call_libc("capset", _Header(CAPABILITY_VERSION, 0), _Capabilities())


def install_filter(program: bytes) -> None:
    """Install a system call filter in the current process."""
    process_control(SET_SECCOMP, SECCOMP_FILTER, _Program(len(program) // INSTRUCTION_BYTES, program))
