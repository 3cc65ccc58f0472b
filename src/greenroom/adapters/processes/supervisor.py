"""The supervisor of commands: a small program of ours beside Greenroom, which ends all commands when Greenroom ends.

For each command it forks a guard, which starts it, ends it in time and sees all of it dead. Both use the standard
library only.
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

from greenroom.adapters.processes.confinement import BridgeBuilder, Walls, enclose, prepare
from greenroom.adapters.processes.family import TERMINAL, Family, die_with_parent, ignore_terminal, news_of, send, wait

GO: Final = b"g"
STOP: Final = b"s"
CHANGED: Final = (
    *(signal.SIGPIPE, signal.SIGXFSZ),  # by Python
    *(*TERMINAL, signal.SIGTERM, signal.SIGCHLD),  # by us
)
"""Signals that mean something else here than a command expects."""

NOT_RUN: Final = 127
"""What shells say when there is no such program."""

SIGNALS: Final = 128
"""What a program adds that can only tell by its exit code of which signal another one died."""


class Asked(TypedDict):
    """What Greenroom asks for, in one line of JSON."""

    words: list[str]
    folder: str
    seconds: float
    grace: float
    env: Mapping[str, str]
    walls: NotRequired[Walls]


class Ready(TypedDict):
    """What Greenroom is told first: the command's process and its guard's, and whether none below can be missed."""

    pid: int
    guard: int
    contained: bool


class Told(TypedDict):
    """What Greenroom is told in the end, in one line of JSON. `dead` says whether all are."""

    how: Literal["exited", "signalled", "timed_out", "cancelled"]
    code: int
    seconds: float
    strays: int
    dead: bool


class Guard:
    """One command's."""

    def __init__(self, control: socket.socket, output: int) -> None:
        self._control = control
        self._output = output
        self._news = news_of(signal.SIGCHLD, signal.SIGTERM)
        self._family = Family()
        self._began = 0.0
        self._verdict: int | None = None

    def run(self) -> None:
        """Start the command, watch it, end it, tell of it. Where nobody listens, it never goes."""
        asked = self._asked()
        if asked is None:
            return
        pid, gate = self._stand_ready(asked)
        self._say(Ready(pid=pid, guard=os.getpid(), contained=self._family.contained))
        cause = self._watch(pid, gate, asked["seconds"])
        seconds = time.monotonic() - self._began if self._began else 0.0
        alone = self._family.gone(pid)
        # Who is still there when the outermost program has ended dies with it, and was not left running by anybody.
        outer = bool(self._family.spared)
        strays = 0 if alone or outer or cause is not None else len(self._family.below())
        hasty = not self._began or (outer and cause is None)
        # What has done nothing yet needs no time to tidy up.
        dead = alone or (
            self._family.kill(pid, self._news) if hasty else self._family.end(pid, self._news, asked["grace"])
        )
        code = self._code(pid)
        how = cause or ("exited" if code >= 0 else "signalled")
        self._say(Told(how=how, code=code, seconds=seconds, strays=strays, dead=dead))

    def _code(self, pid: int) -> int:
        """How it ended: its exit code, or the signal below zero; also where walls around it only tell a code."""
        code = self._family.ends.get(pid, -signal.SIGKILL)
        if self._verdict is None:
            return code
        by_signal = os.read(self._verdict, 1)  # it is closed by now: all who had it are dead
        os.close(self._verdict)
        return SIGNALS - code if by_signal and code > SIGNALS else code

    def _asked(self) -> Asked | None:
        """What Greenroom wants; None when it is gone, or already wants no more."""
        line = b""
        while b"\n" not in line:
            piece = self._control.recv(65_536)
            if not piece:
                return None
            line += piece
        asked: Asked | None = json.loads(line) if line.endswith(b"\n") else None
        return asked

    def _say(self, what: object) -> None:
        try:
            self._control.sendall(json.dumps(what).encode() + b"\n")
        except OSError:
            return  # Greenroom is gone; what there is to do is done all the same

    def _stand_ready(self, asked: Asked) -> tuple[int, int]:
        """The command's process, waiting at its gate, and the gate."""
        walls = asked.get("walls")
        waits, gate = os.pipe()
        self._verdict, verdict = os.pipe() if walls and walls["verdict"] is not None else (None, -1)
        bridge = BridgeBuilder(walls["bridge"]) if walls and walls["bridge"] is not None else None
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.close(gate)
            self._control.close()
            _become(asked, self._output, waits, me, lambda: _confine(walls, verdict, bridge))
        os.close(waits)
        if self._verdict is not None:
            os.close(verdict)
        self._family.spared = pid if walls and walls["outer"] else 0
        os.close(self._output)  # or its end would never be heard
        if bridge is not None:
            bridge.begin()
        return pid, gate

    def _heard(self) -> bytes:
        """A word of Greenroom; none when it is gone."""
        try:
            return self._control.recv(1)
        except OSError:
            return b""

    def _watch(self, pid: int, gate: int, seconds: float) -> Literal["timed_out", "cancelled"] | None:
        """Until it ends by itself (None) or has to."""
        while True:
            left = self._began + seconds - time.monotonic() if self._began else None
            if left is not None and left <= 0:
                return "timed_out"
            heard, ready = wait(self._news, left, self._control.fileno())
            self._family.bury()
            if pid in self._family.ends:
                return None
            word = self._heard() if ready else b""
            if signal.SIGTERM in heard or (ready and word != GO):
                return "cancelled"
            if word == GO:
                self._began = time.monotonic()
                os.write(gate, GO)
                os.close(gate)


def _become(asked: Asked, output: int, waits: int, guard: int, confine: Callable[[], None]) -> None:
    """Become the command, once its gate is opened. This runs in a process of its own and never returns."""
    try:
        os.setsid()
        die_with_parent(signal.SIGKILL)
        wrong = ""
        try:
            if "walls" in asked:
                prepare(asked["walls"])
        except (OSError, ValueError) as error:
            wrong = f"no walls could be put up around it ({error})"
        if os.getppid() == guard and os.read(waits, 1) == GO:
            _surround(output)
            if not wrong:
                wrong = _execute(asked, confine)
            sys.stderr.write(f"{asked['words'][0]} could not be run: {wrong}\n")
            sys.stderr.flush()
    finally:
        os._exit(NOT_RUN)


def _surround(output: int) -> None:
    """Nothing to read, one place to print to, and signals that mean what they always do."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, source in enumerate((nothing, output, output)):
        os.dup2(source, number)
    signal.set_wakeup_fd(-1)
    for ours in CHANGED:
        signal.signal(ours, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core has all that was in memory


def _execute(asked: Asked, confine: Callable[[], None]) -> str:
    """Become it, or say why not."""
    try:
        confine()
        os.chdir(asked["folder"])
        os.execvpe(asked["words"][0], asked["words"], asked["env"])  # the words were checked by whoever asked
    except (OSError, ValueError) as error:
        return str(error)


def _confine(walls: Walls | None, verdict: int, bridge: BridgeBuilder | None) -> None:
    """Put the walls up, with what they need of the guard: where they tell how it ended, and how to get out."""
    if walls is None:
        return
    if walls["verdict"] is not None:
        os.dup2(verdict, walls["verdict"])
        os.set_inheritable(walls["verdict"], True)
    if bridge is not None:
        bridge.hand_over()
    enclose(walls)


HANDED: Final = 2
LEAVING: Final = 2.0
"""Seconds that the guards have to end their commands when Greenroom is gone."""


class Supervisor:
    """Its children are guards; whoever else becomes one has lost its guard, and is ended."""

    def __init__(self, greenroom: socket.socket) -> None:
        self._greenroom = greenroom
        self._news = news_of(signal.SIGCHLD, signal.SIGTERM)
        self._family = Family()
        self._guards: set[int] = set()

    def run(self) -> None:
        """Until Greenroom is gone, or says that it is enough."""
        while True:
            heard, ready = wait(self._news, None, self._greenroom.fileno())
            self._bury()
            if signal.SIGTERM in heard or (ready and not self._take()):
                break
        self._greenroom.close()
        self._leave()

    def _take(self) -> bool:
        """Fork a guard for what is handed to us; False when Greenroom has nothing more to say."""
        word, handed, _, _ = socket.recv_fds(self._greenroom, 1, HANDED)
        if not word:
            return False
        if len(handed) == HANDED:
            for number in handed:
                os.set_inheritable(number, False)
            self._fork(*handed)
        for number in handed:
            os.close(number)
        return True

    def _fork(self, control: int, output: int) -> None:
        me = os.getpid()
        pid = os.fork()
        if pid:
            self._guards.add(pid)
            return
        try:
            signal.set_wakeup_fd(-1)
            os.close(self._news)
            self._greenroom.close()
            os.setsid()
            die_with_parent(signal.SIGTERM)
            if os.getppid() == me:
                Guard(socket.socket(fileno=control), output).run()
        finally:
            os._exit(0)

    def _bury(self) -> None:
        self._family.bury()
        self._guards -= self._family.ends.keys()
        self._family.ends.clear()
        if not self._family.contained:
            return
        strays = [pid for pid in self._family.children() if pid not in self._guards]
        for pid in (*strays, *(self._family.below(*strays) if strays else ())):
            send(pid, signal.SIGKILL)

    def _leave(self) -> None:
        """The guards hear for themselves that Greenroom is gone; told again, they need not wait for it."""
        for pid in self._guards:
            send(pid, signal.SIGTERM)
        deadline = time.monotonic() + LEAVING
        while not self._family.bury() and time.monotonic() < deadline:
            wait(self._news, deadline - time.monotonic())
        self._family.kill(0, self._news)


def main(number: int) -> None:
    """The program; `number` is its socket to Greenroom."""
    ignore_terminal()
    die_with_parent(signal.SIGTERM)
    Supervisor(socket.socket(fileno=number)).run()
