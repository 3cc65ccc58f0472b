"""The supervisor of commands: a small program beside Greenroom that ends all commands when Greenroom ends.

For each command it forks a command supervisor. That process starts the command, ends it in time and checks that all its
processes are dead. Both use the standard library only.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final, Literal, NotRequired, TypedDict

from greenroom.adapters.processes.confinement import BridgeBuilder, SandboxJson, apply_sandbox, prepare
from greenroom.adapters.processes.process_tree import (
    TERMINAL_SIGNALS,
    ProcessTree,
    die_with_parent,
    ignore_terminal_signals,
    open_signal_pipe,
    send_signal,
    wait_for_signals,
)

GO: Final = b"g"
STOP: Final = b"s"
KILL: Final = b"k"
CHANGED_SIGNALS: Final = (
    *(signal.SIGPIPE, signal.SIGXFSZ),  # changed by Python
    *(*TERMINAL_SIGNALS, signal.SIGTERM, signal.SIGCHLD),  # changed here
)
"""Signals whose handling differs here from what a command expects."""

NOT_RUN: Final = 127
"""The exit code of shells for a missing program."""

SIGNAL_CODE_BASE: Final = 128
"""What a program adds to a signal number to report it as an exit code."""


class CommandRequest(TypedDict):
    """The request of Greenroom, one line of JSON."""

    words: list[str]
    folder: str
    seconds: float
    grace: float
    env: Mapping[str, str]
    sandbox: NotRequired[SandboxJson]


class SupervisorReady(TypedDict):
    """The first reply: the process ids of the command and its supervisor, and whether all descendants are tracked."""

    pid: int
    guard: int
    contained: bool


class CommandReport(TypedDict):
    """The last reply, one line of JSON. `dead` says whether all processes are dead."""

    how: Literal["exited", "signalled", "timed_out", "cancelled"]
    code: int
    seconds: float
    strays: int
    dead: bool


class CommandSupervisor:
    def __init__(self, control: socket.socket, output: int) -> None:
        self._control = control
        self._output = output
        self._signal_pipe = open_signal_pipe(signal.SIGCHLD, signal.SIGTERM)
        self._tree = ProcessTree()
        self._started_at = 0.0
        self._is_hurried = False
        self._signal_fd: int | None = None

    def run(self) -> None:
        """Start the command, watch it, end it and report. Without a request, nothing runs."""
        request = self._read_request()
        if request is None:
            return
        pid, gate = self._start_waiting(request)
        self._send(SupervisorReady(pid=pid, guard=os.getpid(), contained=self._tree.is_contained))
        cause = self._watch(pid, gate, request["seconds"])
        seconds = time.monotonic() - self._started_at if self._started_at else 0.0
        is_gone = self._tree.is_gone(pid)
        # Processes that outlive bubblewrap die with it, so they do not count as left running.
        has_outer = bool(self._tree.spared_pid)
        strays = 0 if is_gone or has_outer or cause is not None else len(self._tree.list_descendants())
        skips_grace = not self._started_at or self._is_hurried or (has_outer and cause is None)
        # A command that has not started needs no time to clean up.
        are_all_dead = is_gone or (
            self._tree.kill(pid, self._signal_pipe)
            if skips_grace
            else self._tree.terminate(pid, self._signal_pipe, request["grace"])
        )
        code = self._read_exit_code(pid)
        how = cause or ("exited" if code >= 0 else "signalled")
        self._send(CommandReport(how=how, code=code, seconds=seconds, strays=strays, dead=are_all_dead))

    def _read_exit_code(self, pid: int) -> int:
        """Return the exit code, or the negative signal number, even if the sandbox only reports a code."""
        code = self._tree.exit_codes.get(pid, -signal.SIGKILL)
        if self._signal_fd is None:
            return code
        by_signal = os.read(self._signal_fd, 1)  # the write end is closed: all its processes are dead
        os.close(self._signal_fd)
        return SIGNAL_CODE_BASE - code if by_signal and code > SIGNAL_CODE_BASE else code

    def _read_request(self) -> CommandRequest | None:
        """Read the request; None if Greenroom is gone or has already cancelled."""
        line = b""
        while b"\n" not in line:
            piece = self._control.recv(65_536)
            if not piece:
                return None
            line += piece
        request: CommandRequest | None = json.loads(line) if line.endswith(b"\n") else None
        return request

    def _send(self, message: object) -> None:
        try:
            self._control.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            return  # Greenroom is gone; continue anyway

    def _start_waiting(self, request: CommandRequest) -> tuple[int, int]:
        """Fork the command's process, which waits at a gate. Return its pid and the gate."""
        sandbox = request.get("sandbox")
        gate_read, gate = os.pipe()
        self._signal_fd, signal_fd = os.pipe() if sandbox and sandbox["signal_fd"] is not None else (None, -1)
        bridge = BridgeBuilder(sandbox["bridge"]) if sandbox and sandbox["bridge"] is not None else None
        supervisor_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.close(gate)
            self._control.close()
            _become_command(
                request, self._output, gate_read, supervisor_pid, lambda: _confine(sandbox, signal_fd, bridge)
            )
        os.close(gate_read)
        if self._signal_fd is not None:
            os.close(signal_fd)
        self._tree.spared_pid = pid if sandbox and sandbox["outer"] else 0
        os.close(self._output)  # otherwise the end of the output goes unnoticed
        if bridge is not None:
            bridge.start()
        return pid, gate

    def _read_word(self) -> bytes:
        """Read a control byte from Greenroom; empty if it is gone."""
        try:
            return self._control.recv(1)
        except OSError:
            return b""

    def _watch(self, pid: int, gate: int, seconds: float) -> Literal["timed_out", "cancelled"] | None:
        """Watch the command until it ends (None), times out or is cancelled."""
        while True:
            remaining = self._started_at + seconds - time.monotonic() if self._started_at else None
            if remaining is not None and remaining <= 0:
                return "timed_out"
            signals, ready = wait_for_signals(self._signal_pipe, remaining, self._control.fileno())
            self._tree.reap()
            if pid in self._tree.exit_codes:
                return None
            word = self._read_word() if ready else b""
            if signal.SIGTERM in signals or (ready and word != GO):
                self._is_hurried = word == KILL
                return "cancelled"
            if word == GO:
                self._started_at = time.monotonic()
                os.write(gate, GO)
                os.close(gate)


def _become_command(
    request: CommandRequest, output: int, gate: int, supervisor_pid: int, confine: Callable[[], None]
) -> None:
    """Wait for the gate, then become the command. This runs in the forked process and never returns."""
    try:
        os.setsid()
        die_with_parent(signal.SIGKILL)
        problem = ""
        try:
            if "sandbox" in request:
                prepare(request["sandbox"])
        except (OSError, ValueError) as error:
            problem = f"its sandbox could not be set up ({error})"
        if os.getppid() == supervisor_pid and os.read(gate, 1) == GO:
            _redirect_streams(output)
            if not problem:
                problem = _execute(request, confine)
            sys.stderr.write(f"{request['words'][0]} could not be run: {problem}\n")
            sys.stderr.flush()
    finally:
        os._exit(NOT_RUN)


def _redirect_streams(output: int) -> None:
    """Connect stdin to nothing and both outputs to the pipe, and restore the default signals."""
    devnull = os.open(os.devnull, os.O_RDONLY)
    for number, source in enumerate((devnull, output, output)):
        os.dup2(source, number)
    signal.set_wakeup_fd(-1)
    for changed in CHANGED_SIGNALS:
        signal.signal(changed, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump contains the whole memory


def _execute(request: CommandRequest, confine: Callable[[], None]) -> str:
    """Execute the command, or return why it failed."""
    try:
        confine()
        os.chdir(request["folder"])
        os.execvpe(request["words"][0], request["words"], request["env"])  # the caller has checked the words
    except (OSError, ValueError) as error:
        return str(error)


def _confine(sandbox: SandboxJson | None, signal_fd: int, bridge: BridgeBuilder | None) -> None:
    """Apply the sandbox, with the descriptors for its exit signal and its network bridge."""
    if sandbox is None:
        return
    if sandbox["signal_fd"] is not None:
        os.dup2(signal_fd, sandbox["signal_fd"])
        os.set_inheritable(sandbox["signal_fd"], True)
    if bridge is not None:
        bridge.hand_over()
    apply_sandbox(sandbox)


HANDED_DESCRIPTORS: Final = 2
CLOSE_TIMEOUT_S: Final = 2.0
"""How long commands may take to end when Greenroom is gone, in seconds."""


class Supervisor:
    """Its children are command supervisors. Any other child has lost its supervisor and is killed."""

    def __init__(self, greenroom: socket.socket) -> None:
        self._greenroom = greenroom
        self._signal_pipe = open_signal_pipe(signal.SIGCHLD, signal.SIGTERM)
        self._tree = ProcessTree()
        self._command_supervisors: set[int] = set()

    def run(self) -> None:
        """Serve requests until Greenroom is gone or closes the socket."""
        while True:
            signals, ready = wait_for_signals(self._signal_pipe, None, self._greenroom.fileno())
            self._reap()
            if signal.SIGTERM in signals or (ready and not self._accept()):
                break
        self._greenroom.close()
        self._end_all()

    def _accept(self) -> bool:
        """Accept a request and fork a command supervisor; return False at the end."""
        word, handed, _, _ = socket.recv_fds(self._greenroom, 1, HANDED_DESCRIPTORS)
        if not word:
            return False
        if len(handed) == HANDED_DESCRIPTORS:
            for number in handed:
                os.set_inheritable(number, False)
            self._fork_command_supervisor(*handed)
        for number in handed:
            os.close(number)
        return True

    def _fork_command_supervisor(self, control: int, output: int) -> None:
        parent_pid = os.getpid()
        pid = os.fork()
        if pid:
            self._command_supervisors.add(pid)
            return
        try:
            signal.set_wakeup_fd(-1)
            os.close(self._signal_pipe)
            self._greenroom.close()
            os.setsid()
            die_with_parent(signal.SIGTERM)
            if os.getppid() == parent_pid:
                CommandSupervisor(socket.socket(fileno=control), output).run()
        finally:
            os._exit(0)

    def _reap(self) -> None:
        self._tree.reap()
        self._command_supervisors -= self._tree.exit_codes.keys()
        self._tree.exit_codes.clear()
        if not self._tree.is_contained:
            return
        strays = [pid for pid in self._tree.list_children() if pid not in self._command_supervisors]
        for pid in (*strays, *(self._tree.list_descendants(*strays) if strays else ())):
            send_signal(pid, signal.SIGKILL)

    def _end_all(self) -> None:
        """End all commands. Their supervisors notice the end of Greenroom themselves; a signal makes it faster."""
        for pid in self._command_supervisors:
            send_signal(pid, signal.SIGTERM)
        deadline = time.monotonic() + CLOSE_TIMEOUT_S
        while not self._tree.reap() and time.monotonic() < deadline:
            wait_for_signals(self._signal_pipe, deadline - time.monotonic())
        self._tree.kill(0, self._signal_pipe)


def main(number: int) -> None:
    """Run the supervisor; `number` is the descriptor of its socket to Greenroom."""
    ignore_terminal_signals()
    die_with_parent(signal.SIGTERM)
    Supervisor(socket.socket(fileno=number)).run()
