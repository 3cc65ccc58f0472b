"""Attempts on the kernel: rarely needed system calls with a history of bugs, and machine-wide settings."""

from __future__ import annotations

import ctypes
import fcntl
import os
import subprocess
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from tests.sandbox.attempt import Attempt, Midway, Tried
from tests.sandbox.seeing import exists, has_open, holds, its_proc, leaked, other_space, pythons
from tests.sandbox.stage import Stage

call = partial(Attempt, kind="kernel")
rooted = partial(call, needs=("root",))


def _opens(name: str, script: str, what: str, *, root: bool = False) -> Attempt:
    return call(name=name, script=f"{script}\nhold()", midway=has_open(what), needs=("root",) if root else ())


def _apart(name: str, flag: int, *, root: bool = False) -> Attempt:
    """Move a child into its own namespace. Its parent stays, so that both can be compared."""
    script = f"""
told, tell = os.pipe()
if os.fork() == 0:
    failed = libc.unshare({flag:#x})
    os.write(tell, b'done')
    time.sleep(30)
os.read(told, 9)
hold()
"""
    return call(name=f"a namespace: {name}", script=script, midway=other_space(name), needs=("root",) if root else ())


def alone(stage: Stage) -> None:
    """Lock machine-wide state, so that one attempt at a time uses it."""
    lock = os.open(__file__, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    stage.afterwards(lambda: os.close(lock))


def _kept(path: str) -> partial[None]:
    return partial(_keep, path)


def _keep(path: str, stage: Stage) -> None:
    """Restore a machine setting afterwards."""
    alone(stage)
    before = Path(path).read_bytes()
    stage.afterwards(lambda: _put_back(Path(path), before))


def _put_back(path: Path, before: bytes) -> None:
    if path.read_bytes() != before:
        path.write_bytes(before or b"\n")


def _setting(name: str, path: str, value: str) -> Attempt:
    return rooted(
        name=name,
        script=f"open('{path}', 'w').write('{value}')",
        ready=_kept(path),
        seen=holds(path, value),
    )


def _unmounted(stage: Stage) -> None:
    (stage.work / "m").mkdir()
    words = ["umount", "-l", str(stage.work / "m")]
    stage.afterwards(lambda: subprocess.run(words, check=False, stderr=subprocess.DEVNULL))


def _cgroup(stage: Stage) -> Path:
    return Path(f"/sys/fs/cgroup/pids/escape-{stage.token}")


def _no_cgroup(stage: Stage) -> None:
    stage.afterwards(lambda: _remove(_cgroup(stage)))


def _remove(folder: Path) -> None:
    if folder.exists():
        folder.rmdir()


def _said(stage: Stage) -> None:
    Path("/dev/kmsg").write_text(f"escape suite: {stage.secret}\n", encoding="ascii")


def _kernel_heard(stage: Stage, _tried: Tried) -> str:
    libc, text = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(1 << 20)
    size = libc.klogctl(3, text, 1 << 20)
    return "the kernel's log has it" if stage.token.encode() in text.raw[: max(size, 0)] else ""


def _at_terminal(stage: Stage, _tried: Tried) -> str:
    """Return what a person would see on the terminal: echoed input and written output."""
    number, heard, deadline = int((stage.base / "terminal").read_text("ascii")), b"", time.monotonic() + 0.2
    while time.monotonic() < deadline:
        with suppress(BlockingIOError):
            heard += os.read(number, 4096)
        if stage.token.encode() in heard:
            return "a person's terminal has it"
        time.sleep(0.01)
    return ""


def _real_time(_stage: Stage, pids: tuple[int, ...]) -> str:
    return "it has real time" if any(os.sched_getscheduler(pid) == os.SCHED_FIFO for pid in pythons(pids)) else ""


def _powers(_stage: Stage, pids: tuple[int, ...]) -> str:
    """The process has administrator capabilities, or can still get them from a program."""
    for pid in pythons(pids):
        status = Path(f"/proc/{pid}/status").read_text("ascii")
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        if int(fields["CapEff"], 16) or int(fields["CapPrm"], 16):
            return f"it has powers: {fields['CapEff'].strip()}"
    return ""


def _setuid(stage: Stage, _tried: Tried) -> str:
    path = stage.work / "sh"
    there = path.exists() and path.stat().st_uid == 0 and path.stat().st_mode & 0o4000
    return "a program that makes anybody root is there" if there else ""


def _with_powers(stage: Stage, _tried: Tried) -> str:
    with suppress(OSError):
        os.getxattr(stage.work / "powerful", "security.capability")
        return "a program with powers of its own is there"
    return ""


def _device(stage: Stage, _tried: Tried) -> str:
    path = stage.work / "device"
    return "a device is there" if path.is_char_device() or path.is_block_device() else ""


def _key(stage: Stage, _pids: tuple[int, ...]) -> str:
    keys = Path("/proc/keys").read_text("ascii") if Path("/proc/keys").exists() else ""
    return "a key is in the host's keyring" if f"escape-{stage.token}" in keys else ""


MOUNT: Final = "checked(libc.mount(b'escape-@token@', b'm', b'tmpfs', 0, None))\nhold()"
IN_A_NAMESPACE: Final = """
ids = os.getuid(), os.getgid()
checked(libc.unshare(0x10020000))
open('/proc/self/setgroups', 'w').write('deny')
open('/proc/self/uid_map', 'w').write(f'0 {ids[0]} 1')
"""
mounted: Final[Midway] = its_proc("mountinfo", "escape-@token@")
LOG: Final = "text = ctypes.create_string_buffer(1 << 20); checked(libc.klogctl(3, text, 1 << 20)); print(text.value)"
TYPE: Final = "fcntl.ioctl(fd, 0x5412, bytes([letter]))"

KERNEL: Final = (
    _apart("user", 0x10000000),
    _apart("mnt", 0x20000, root=True),
    _apart("net", 0x40000000, root=True),
    call(
        name="a file system mounted in a namespace of its own",
        script=IN_A_NAMESPACE + MOUNT,
        midway=mounted,
        ready=_unmounted,
    ),
    rooted(name="a file system mounted", script=MOUNT, midway=mounted, ready=_unmounted),
    _opens("a file system by the new calls", "call('fsopen', b'tmpfs', 0)", "[fscontext]", root=True),
    _opens("io_uring", "call('io_uring', 8, ctypes.create_string_buffer(256))", "[io_uring]"),
    _opens(
        "bpf",
        "call('bpf', 0, ctypes.create_string_buffer(struct.pack('IIII', 2, 4, 4, 1), 128), 128)",
        "bpf-map",
        root=True,
    ),
    _opens(
        "perf",
        "call('perf', ctypes.create_string_buffer(struct.pack('IIQ', 1, 128, 0), 128), 0, -1, -1, 0)",
        "[perf_event]",
        root=True,
    ),
    _opens("userfaultfd", "call('userfaultfd', 1)", "[userfaultfd]"),
    _opens("fanotify", "call('fanotify', 0, 0)", "[fanotify]", root=True),
    call(
        name="a key in the keyring",
        script="call('add_key', b'user', b'escape-@token@', b'x', 1, -4)\nhold()",
        midway=_key,
    ),
    call(
        name="another personality",
        script="checked(libc.personality(0x0400000))\nhold()",
        midway=its_proc("personality", "00400000"),
    ),
    call(name="rights may still be gained", script="hold()", midway=its_proc("status", "NoNewPrivs: 0")),
    rooted(name="the administrator's powers", script="hold()", midway=_powers),
    rooted(
        name="a program that makes anybody root",
        script="import shutil; shutil.copy('/bin/sh', 'sh'); os.chmod('sh', 0o4755)",
        seen=_setuid,
    ),
    rooted(
        name="a program with powers of its own",
        script="open('powerful', 'w'); os.setxattr('powerful', 'security.capability', "
        "struct.pack('<IIIII', 0x2000001, 0x80, 0, 0, 0))",
        seen=_with_powers,
    ),
    _setting("the program for crashes", "/proc/sys/kernel/core_pattern", "core-@token@"),
    _setting("the name of the network's domain", "/proc/sys/kernel/domainname", "escape-@token@"),
    _setting("a setting of the kernel", "/proc/sys/fs/lease-break-time", "46"),
    rooted(
        name="the domain's name by a call",
        script="checked(libc.setdomainname(b'call-@token@', 21))",
        ready=_kept("/proc/sys/kernel/domainname"),
        seen=holds("/proc/sys/kernel/domainname", "call-@token@"),
    ),
    rooted(
        name="a cgroup of its own",
        script="os.mkdir('/sys/fs/cgroup/pids/escape-@token@')",
        ready=_no_cgroup,
        seen=exists("/sys/fs/cgroup/pids/escape-@token@"),
        needs=("root", "cgroup v1"),
    ),
    rooted(
        name="a program for empty cgroups",
        script="open('/sys/fs/cgroup/freezer/release_agent', 'w').write('/escape-@token@')",
        ready=_kept("/sys/fs/cgroup/freezer/release_agent"),
        seen=holds("/sys/fs/cgroup/freezer/release_agent", "/escape-@token@"),
        needs=("root", "cgroup v1"),
    ),
    rooted(name="the kernel's log read", script=LOG, ready=_said, seen=leaked),
    rooted(
        name="the kernel's log written",
        script="open('/dev/kmsg', 'w').write('escape @token@\\n')",
        seen=_kernel_heard,
    ),
    rooted(name="a device made", script="os.mknod('device', 0o20666, os.makedev(1, 11))", seen=_device),
    _opens("a device for networks", "fd = os.open('/dev/net/tun', os.O_RDWR)", "/dev/net/tun", root=True),
    rooted(
        name="keys typed at a person's terminal",
        script=(
            f"import fcntl\nfd = os.open('@terminal@', os.O_RDWR | os.O_NOCTTY)\nfor letter in b'@token@':\n    {TYPE}"
        ),
        seen=_at_terminal,
    ),
    call(
        name="a line written to a person's terminal",
        script="fd = os.open('@terminal@', os.O_WRONLY | os.O_NOCTTY); os.write(fd, b'@token@')",
        seen=_at_terminal,
    ),
    rooted(
        name="real time",
        script="os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))\nhold()",
        midway=_real_time,
    ),
)
