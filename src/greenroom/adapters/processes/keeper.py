"""Keep one long-lived program, an MCP server or Chromium: a small program of ours between it and Greenroom.

When the program ends, or when Greenroom ends it or is killed, every process that the program has begun is ended. It
uses the standard library only; other rooms start it by name (`-c`) and never import it.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.processes.confinement import NO_NEW_PRIVILEGES, install_filter
from greenroom.adapters.processes.family import (
    TERMINAL,
    Family,
    die_with_parent,
    ignore_terminal,
    news_of,
    process_control,
    wait,
)

NOT_RUN: Final = 127
SERVER_GRACE: Final = 0.3
BROWSER_GRACE: Final = 0.5
"""Seconds between being told to end and being killed."""

PARENT_LOOK: Final = 1.0
"""Seconds between two looks whether our parent lives, where no signal tells."""

BROWSER_PIPES: Final = (3, 4)
"""Over which playwright talks to Chromium. Who keeps them open keeps their end from being noticed."""

LOAD, EQUAL, AT_LEAST, AND, ANSWER = 0x20, 0x15, 0x35, 0x54, 0x06
REFUSED, ALLOWED = 0x0005_0000 | errno.EACCES, 0x7FFF_0000
MACHINES: Final = {"x86_64": (0xC000_003E, 41), "aarch64": (0xC000_00B7, 198)}
"""How the kernel calls them, and their number for `socket`."""

OTHER_NUMBERS: Final = 0x4000_0000
"""From here on the same calls have second numbers on some machines."""


def serve(variables: str, words: Sequence[str]) -> int:
    """Keep an MCP server for as long as our parent lives; its exit code. It has the pipes that we were given, and of
    our environment only these variables."""
    ignore_terminal()
    for name in os.environ.keys() - set(variables.split()):
        del os.environ[name]
    die_with_parent(signal.SIGTERM)
    code = _keep(words, None, SERVER_GRACE, nothing, _let_go_of_input)
    with suppress(OSError):
        os.write(2, f"\n(exit code {code})\n".encode())
    return code


def browse(folder: str, uid: int, gid: int, words: Sequence[str]) -> int:
    """Keep Chromium, as another user if we are root. We are two: playwright kills the group of what it has started, and
    must not hit who clears up."""
    ignore_terminal()
    pid = os.fork()
    if not pid:
        os.setsid()
        os._exit(_browse(Path(folder), uid, gid, words))
    _let_go_of_browser()
    _, status = os.waitpid(pid, 0)
    return abs(os.waitstatus_to_exitcode(status))


def _browse(folder: Path, uid: int, gid: int, words: Sequence[str]) -> int:
    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _close_udp()
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
        os.chdir(folder / "profile")

    die_with_parent(signal.SIGTERM)
    lifeline = _hang_on(folder)
    if lifeline is None or os.getppid() == 1:
        return NOT_RUN
    code = _keep(words, lifeline, BROWSER_GRACE, prepare, _let_go_of_browser)
    shutil.rmtree(folder, ignore_errors=True)  # a Greenroom that was killed cannot
    return code


def _keep(
    words: Sequence[str], lifeline: int | None, grace: float, prepare: Callable[[], None], let_go: Callable[[], None]
) -> int:
    """Start it, wait for its end or for ours (without a lifeline: our parent's), leave no process behind."""
    parent, lines = os.getppid(), () if lifeline is None else (lifeline,)
    news = news_of(signal.SIGCHLD, signal.SIGTERM)
    family = Family()
    pid = _start(words, prepare)
    let_go()
    told = False
    while pid not in family.ends and not told:
        heard, ready = wait(news, None if lines else PARENT_LOOK, *lines)
        told = bool(ready) or signal.SIGTERM in heard or (not lines and os.getppid() != parent)
        family.bury()
    family.end(pid, news, grace)
    code = family.ends.get(pid, -signal.SIGKILL)
    return code if code >= 0 else 128 - code


def _start(words: Sequence[str], prepare: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (*TERMINAL, signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        prepare()
        die_with_parent(signal.SIGKILL)  # last: becoming another user forgets it
        os.execvp(words[0], [*words])
    except OSError as error:
        os.write(2, f"{words[0]} could not be started: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(NOT_RUN)


def nothing() -> None:
    """There is nothing to prepare."""


def _let_go_of_input() -> None:
    """What we do not read, only the server's end is noticed by."""
    empty = os.open(os.devnull, os.O_RDWR)
    os.dup2(empty, 0)
    os.close(empty)


def _let_go_of_browser() -> None:
    """Of what belongs to Chromium alone."""
    for pipe in BROWSER_PIPES:
        with suppress(OSError):
            os.close(pipe)


def _hang_on(folder: Path) -> int | None:
    """The lifeline, and a sign of life that lasts as long as we do; None when the other end is gone."""
    try:
        os.open(folder / "done", os.O_WRONLY | os.O_NONBLOCK)
        life = os.open(folder / "life", os.O_RDONLY | os.O_NONBLOCK)
        return life if os.read(life, 1) else None
    except OSError:
        return None


def _close_udp() -> None:
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
    if os.geteuid() != 0:
        process_control(NO_NEW_PRIVILEGES, 1)
    install_filter(b"".join(struct.pack("=HBBI", *line) for line in lines))
