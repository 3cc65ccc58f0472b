"""Supervise one long-lived program, an MCP server or Chromium. This program runs between it and Greenroom.

When the program ends, or Greenroom ends it or is killed, all its processes are ended. It uses the standard library
only. Other rooms start it by name (`-c`) and never import it.
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
from greenroom.adapters.processes.process_tree import (
    TERMINAL_SIGNALS,
    ProcessTree,
    die_with_parent,
    ignore_terminal_signals,
    open_signal_pipe,
    process_control,
    wait_for_signals,
)

NOT_RUN: Final = 127
SERVER_GRACE: Final = 0.3
BROWSER_GRACE: Final = 0.5
"""Seconds between SIGTERM and SIGKILL."""

PARENT_POLL_S: Final = 1.0
"""Seconds between two checks whether the parent lives, where no signal reports it."""

BROWSER_PIPES: Final = (3, 4)
"""The pipes between playwright and Chromium. They must be closed here, or their end goes unnoticed."""

BPF_LOAD, BPF_JUMP_EQUAL, BPF_JUMP_AT_LEAST, BPF_AND, BPF_RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
SECCOMP_EACCES, SECCOMP_ALLOW = 0x0005_0000 | errno.EACCES, 0x7FFF_0000
SOCKET_CALLS: Final = {"x86_64": (0xC000_003E, 41), "aarch64": (0xC000_00B7, 198)}
"""The audit number of each machine and its number of the call `socket`."""

FOREIGN_CALLS_FROM: Final = 0x4000_0000
"""From this number on, some machines have second numbers for the same calls."""


def serve(variables: str, words: Sequence[str]) -> int:
    """Supervise an MCP server while the parent lives, and return its exit code.

    The server gets the given pipes, and only these variables of the environment.
    """
    ignore_terminal_signals()
    for name in os.environ.keys() - set(variables.split()):
        del os.environ[name]
    die_with_parent(signal.SIGTERM)
    code = _supervise(words, None, SERVER_GRACE, prepare_nothing, _close_input)
    with suppress(OSError):
        os.write(2, f"\n(exit code {code})\n".encode())
    return code


def browse(folder: str, uid: int, gid: int, words: Sequence[str]) -> int:
    """Supervise Chromium, as another user if started by root. Two processes are needed: playwright kills the group of
    the first, and the second cleans up."""
    ignore_terminal_signals()
    pid = os.fork()
    if not pid:
        os.setsid()
        os._exit(_run_browser(Path(folder), uid, gid, words))
    _close_browser_pipes()
    _, status = os.waitpid(pid, 0)
    return abs(os.waitstatus_to_exitcode(status))


def _run_browser(folder: Path, uid: int, gid: int, words: Sequence[str]) -> int:
    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _forbid_udp()
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
        os.chdir(folder / "profile")

    die_with_parent(signal.SIGTERM)
    lifeline = _open_lifeline(folder)
    if lifeline is None or os.getppid() == 1:
        return NOT_RUN
    code = _supervise(words, lifeline, BROWSER_GRACE, prepare, _close_browser_pipes)
    shutil.rmtree(folder, ignore_errors=True)  # a killed Greenroom cannot do it
    return code


def _supervise(
    words: Sequence[str], lifeline: int | None, grace: float, prepare: Callable[[], None], release: Callable[[], None]
) -> int:
    """Start the program, wait for its end or for the end of the lifeline or parent, and end all its processes."""
    parent, lifelines = os.getppid(), () if lifeline is None else (lifeline,)
    signal_pipe = open_signal_pipe(signal.SIGCHLD, signal.SIGTERM)
    tree = ProcessTree()
    pid = _start(words, prepare)
    release()
    must_end = False
    while pid not in tree.exit_codes and not must_end:
        signals, ready = wait_for_signals(signal_pipe, None if lifelines else PARENT_POLL_S, *lifelines)
        must_end = bool(ready) or signal.SIGTERM in signals or (not lifelines and os.getppid() != parent)
        tree.reap()
    tree.terminate(pid, signal_pipe, grace)
    code = tree.exit_codes.get(pid, -signal.SIGKILL)
    return code if code >= 0 else 128 - code


def _start(words: Sequence[str], prepare: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (*TERMINAL_SIGNALS, signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        prepare()
        die_with_parent(signal.SIGKILL)  # last, because switching the user resets it
        os.execvp(words[0], [*words])
    except OSError as error:
        os.write(2, f"{words[0]} could not be started: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(NOT_RUN)


def prepare_nothing() -> None:
    """Do nothing."""


def _close_input() -> None:
    """Close stdin, so that only the server holds it and its end is noticed."""
    empty = os.open(os.devnull, os.O_RDWR)
    os.dup2(empty, 0)
    os.close(empty)


def _close_browser_pipes() -> None:
    """Close the pipes that belong to Chromium."""
    for pipe in BROWSER_PIPES:
        with suppress(OSError):
            os.close(pipe)


def _open_lifeline(folder: Path) -> int | None:
    """Open the lifeline, and a sign of life for the other side; None if Greenroom is gone."""
    try:
        os.open(folder / "done", os.O_WRONLY | os.O_NONBLOCK)
        life = os.open(folder / "life", os.O_RDONLY | os.O_NONBLOCK)
        return life if os.read(life, 1) else None
    except OSError:
        return None


def _forbid_udp() -> None:
    """Forbid all internet sockets except TCP, regardless of Chromium's settings: UDP bypasses proxies."""
    arch, call = SOCKET_CALLS.get(os.uname().machine, (0, 0))
    if not call or not sys.platform.startswith("linux"):
        return
    lines = (
        (BPF_LOAD, 0, 0, 4),
        (BPF_JUMP_EQUAL, 0, 10, arch),
        (BPF_LOAD, 0, 0, 0),
        (BPF_JUMP_AT_LEAST, 7, 0, FOREIGN_CALLS_FROM),
        (BPF_JUMP_EQUAL, 0, 7, call),
        (BPF_LOAD, 0, 0, 16),  # the address family: IPv4, IPv6 or another
        (BPF_JUMP_EQUAL, 1, 0, socket.AF_INET),
        (BPF_JUMP_EQUAL, 0, 4, socket.AF_INET6),
        (BPF_LOAD, 0, 0, 24),  # the socket type, with flags in its higher bits
        (BPF_AND, 0, 0, 0xF),
        (BPF_JUMP_EQUAL, 1, 0, socket.SOCK_STREAM),
        (BPF_RETURN, 0, 0, SECCOMP_EACCES),
        (BPF_RETURN, 0, 0, SECCOMP_ALLOW),
    )
    if os.geteuid() != 0:
        process_control(NO_NEW_PRIVILEGES, 1)
    install_filter(b"".join(struct.pack("=HBBI", *line) for line in lines))
