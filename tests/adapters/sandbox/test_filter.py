"""The filter of system calls and the profile for macOS, as texts that a kernel reads."""

from __future__ import annotations

import errno
import platform
import struct
from pathlib import Path

import pytest

from greenroom.adapters.sandbox.choice import make_sandbox
from greenroom.adapters.sandbox.seatbelt import Seatbelt
from greenroom.adapters.sandbox.seccomp import LAST_KNOWN_CALL, MACHINES, SECCOMP_ALLOW, SECCOMP_ERRNO, build_filter
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.sandbox import CommandLimits
from tests.adapters.sandbox.walls import ground_of


def decided(program: bytes, number: int, *arguments: int, audit: int) -> int:
    """What a kernel that runs this filter answers: 0 for yes, else an error."""
    given = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("=iIQ6Q", number, audit, 0, *given)
    steps = list(struct.iter_unpack("=HBBI", program))
    held = at = 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        match code:
            case 0x20:
                (held,) = struct.unpack_from("=I", data, value)
            case 0x54:
                held &= value
            case 0x15 | 0x25 | 0x45:
                true = {0x15: held == value, 0x25: held > value, 0x45: held & value != 0}[code]
                at += yes if true else no
            case _:
                return 0 if value == SECCOMP_ALLOW else value - SECCOMP_ERRNO


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "walled", "landlocked"),
    [
        ("ptrace", (), errno.EPERM, errno.EPERM),
        ("io_uring_setup", (), errno.EPERM, errno.EPERM),
        ("mount", (), errno.EPERM, errno.EPERM),
        ("keyctl", (), errno.EPERM, errno.EPERM),
        ("clone3", (), errno.ENOSYS, errno.ENOSYS),
        ("openat2", (), errno.ENOSYS, errno.ENOSYS),
        ("clone", (0x1200011,), 0, 0),
        ("clone", (0x1000_0011,), errno.EPERM, errno.EPERM),
        ("fchmodat", (0, 0, 0o755), 0, 0),
        ("fchmodat", (0, 0, 0o4755), errno.EPERM, errno.EPERM),
        ("openat", (0, 0, 0o100, 0o644), 0, 0),
        ("openat", (0, 0, 0o100, 0o2644), errno.EPERM, errno.EPERM),
        ("openat", (0, 0, 0, 0o7777), 0, 0),
        ("ioctl", (0, 0x5401), 0, 0),
        ("ioctl", (0, 0x5412), errno.EPERM, errno.EPERM),
        ("ioctl", (0, 0x541C), errno.EPERM, errno.EPERM),
        ("socket", (2, 1), 0, errno.EAFNOSUPPORT),
        ("socket", (1, 1), 0, 0),
        ("socket", (1, 2), 0, errno.EPERM),
        ("socket", (16, 3), errno.EAFNOSUPPORT, errno.EAFNOSUPPORT),
        ("socket", (40, 1), errno.EAFNOSUPPORT, errno.EAFNOSUPPORT),
        ("socketpair", (1, 0o2000001), 0, 0),
        ("socketpair", (1, 2), 0, errno.EPERM),
        ("connect", (), 0, errno.EPERM),
        ("bind", (), 0, errno.EPERM),
        ("shmget", (7, 4096), 0, errno.EPERM),
        ("mq_open", (), 0, errno.EPERM),
        ("setxattr", (), 0, errno.EOPNOTSUPP),
        ("setxattrat", (), 0, errno.EOPNOTSUPP),
        ("setpriority", (0, 0, 5), 0, 0),
        ("setpriority", (0, 77, 5), 0, errno.EPERM),
        ("setpriority", (2, 0, 5), 0, errno.EPERM),
        ("prlimit64", (0, 7), 0, 0),
        ("prlimit64", (77, 7), 0, errno.EPERM),
        ("personality", (0xFFFF_FFFF,), 0, 0),
        ("personality", (0x0040_0000,), errno.EPERM, errno.EPERM),
    ],
)
def test_what_may_be_called(machine: str, call: str, arguments: tuple[int, ...], walled: int, landlocked: int) -> None:
    known = MACHINES[machine]
    number = known.calls[call]
    for network, wanted in ((True, walled), (False, landlocked)):
        filtered = build_filter(network=network, machine=machine)
        assert decided(filtered, number, *arguments, audit=known.audit) == wanted


def test_calls_of_other_machines_and_calls_that_are_too_new_are_refused() -> None:
    known = MACHINES["x86_64"]
    program = build_filter(network=True, machine="x86_64")
    assert decided(program, 0, audit=known.audit) == 0
    assert decided(program, 0, audit=0x4000_0003) == errno.EPERM, "32 bits"
    assert decided(program, 0x4000_0000, audit=known.audit) == errno.EPERM, "x32"
    assert decided(program, LAST_KNOWN_CALL + 1, audit=known.audit) == errno.ENOSYS


def test_a_machine_without_a_filter_has_no_walls() -> None:
    with pytest.raises(WorldFault, match="'vax'"):
        build_filter(network=True, machine="vax")
    assert build_filter(network=True) == build_filter(network=True, machine=platform.machine())


def test_the_profile_for_macos_says_what_may_be_done(tmp_path: Path) -> None:
    """Nobody of us has a Mac, so this is all that is known of it."""
    root = tmp_path / 'a "quoted" name'
    root.mkdir()
    wall = make_sandbox("seatbelt", ground_of(root, tmp_path / "scratch"), CommandLimits())
    assert isinstance(wall, Seatbelt)
    enclosed = wall.confine(("make", "all"), str(root), {"PATH": "/usr/bin"})
    assert enclosed.words[:2] == ("/usr/bin/sandbox-exec", "-p")
    assert enclosed.words[3:] == ("make", "all")
    lines = enclosed.words[2].splitlines()
    quoted = str(root).replace('"', '\\"')
    assert lines[1] == "(deny default)"
    assert f'(allow file* (subpath "{quoted}"))' in lines
    assert lines.index(f'(deny file-write* (subpath "{quoted}/.greenroom"))') > lines.index(
        f'(allow file* (subpath "{quoted}"))'
    ), "the last rule counts"
    assert not any("network" in line for line in lines), "so there is none"
    assert wall.tier == "seatbelt"
    assert wall.find_exceeded_limit(enclosed, 0) == ""
    wall.clean_up(enclosed)
    wall.close()
    assert list((tmp_path / "scratch").iterdir()) == []
