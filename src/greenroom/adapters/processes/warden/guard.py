"""A guard: one process per command. It starts the command, ends it in time and sees all of it dead.

The warden forks one for each pair of a control socket and an output pipe that it is handed.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, NotRequired, TypedDict

from greenroom.adapters.processes.warden.enclosure import BridgeBuilder, Walls, enclose, prepare
from greenroom.adapters.processes.warden.processes import Family, die_with_parent, news_of, send, wait

GO: Final = b"g"
STOP: Final = b"s"
CHANGED: Final = (
    *(signal.SIGPIPE, signal.SIGXFSZ),  # by Python
    *(signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD),  # by us
)
"""Signals that mean something else here than a command expects."""

NOT_RUN: Final = 127
"""What shells say when there is no such program."""

SIGNALS: Final = 128
"""What a program adds that can only tell by its exit code of which signal another one died."""


class Asked(TypedDict):
    """What the house asks for, in one line of JSON."""

    words: list[str]
    folder: str
    seconds: float
    grace: float
    env: Mapping[str, str]
    walls: NotRequired[Walls]


class Ready(TypedDict):
    """What the house is told first: the command's process and its guard's, and whether none below can be missed."""

    pid: int
    guard: int
    contained: bool


class Told(TypedDict):
    """What the house is told in the end, in one line of JSON. `dead` says whether all are."""

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
        dead = alone or self._end(pid, 0.0 if hasty else asked["grace"])
        code = self._code(pid)
        how = cause or ("exited" if code >= 0 else "signalled")
        self._say(Told(how=how, code=code, seconds=seconds, strays=strays, dead=dead))

    def _end(self, pid: int, grace: float) -> bool:
        """What has done nothing yet needs no time to tidy up."""
        return self._family.end(pid, self._news, grace) if grace else self._family.kill(pid, self._news)

    def _code(self, pid: int) -> int:
        """How it ended: its exit code, or the signal below zero; also where walls around it only tell a code."""
        code = self._family.ends.get(pid, -signal.SIGKILL)
        if self._verdict is None:
            return code
        by_signal = os.read(self._verdict, 1)  # it is closed by now: all who had it are dead
        os.close(self._verdict)
        return SIGNALS - code if by_signal and code > SIGNALS else code

    def _asked(self) -> Asked | None:
        """What the house wants; None when it is gone, or already wants no more."""
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
            return  # the house is gone; what there is to do is done all the same

    def _stand_ready(self, asked: Asked) -> tuple[int, int]:
        """The command's process, waiting at its gate, and the gate."""
        waits, gate = os.pipe()
        self._verdict, verdict = os.pipe() if _tells(asked) else (None, -1)
        bridge = _bridge(asked)
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.close(gate)
            self._control.close()
            _become(asked, self._output, waits, me, Ends(verdict, bridge))
        os.close(waits)
        if self._verdict is not None:
            os.close(verdict)
        self._family.spared = pid if asked.get("walls", {}).get("outer") else 0
        os.close(self._output)  # or its end would never be heard
        if bridge is not None:
            bridge.begin()
        return pid, gate

    def _heard(self) -> bytes:
        """A word of the house; none when it is gone."""
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


def _tells(asked: Asked) -> bool:
    return asked.get("walls", {}).get("verdict") is not None


def _bridge(asked: Asked) -> BridgeBuilder | None:
    wanted = asked["walls"]["bridge"] if "walls" in asked else None
    return BridgeBuilder(wanted) if wanted is not None else None


class Ends(NamedTuple):
    """What walls need of the guard: where they tell how it ended, and how to get out."""

    verdict: int
    bridge: BridgeBuilder | None


def _become(asked: Asked, output: int, waits: int, guard: int, ends: Ends) -> None:
    """Become the command, once its gate is opened. This runs in a process of its own and never returns."""
    try:
        os.setsid()
        die_with_parent(signal.SIGKILL)
        wrong = _prepared(asked)
        if os.getppid() == guard and os.read(waits, 1) == GO:
            _surround(output)
            if not wrong:
                wrong = _execute(asked, ends)
            sys.stderr.write(f"{asked['words'][0]} could not be run: {wrong}\n")
            sys.stderr.flush()
    finally:
        os._exit(NOT_RUN)


def _prepared(asked: Asked) -> str:
    """What can be done before it may go, and takes time; returns why it could not be."""
    try:
        if "walls" in asked:
            prepare(asked["walls"])
    except (OSError, ValueError) as error:
        return f"no walls could be put up around it ({error})"
    return ""


def _surround(output: int) -> None:
    """Nothing to read, one place to print to, and signals that mean what they always do."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, source in enumerate((nothing, output, output)):
        os.dup2(source, number)
    signal.set_wakeup_fd(-1)
    for ours in CHANGED:
        signal.signal(ours, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core has all that was in memory


def _execute(asked: Asked, ends: Ends) -> str:
    """Become it, or say why not."""
    try:
        if (walls := asked.get("walls")) is not None:
            if walls["verdict"] is not None:
                os.dup2(ends.verdict, walls["verdict"])
                os.set_inheritable(walls["verdict"], True)
            if ends.bridge is not None:
                ends.bridge.hand_over()
            enclose(walls)
        os.chdir(asked["folder"])
        os.execvpe(asked["words"][0], asked["words"], asked["env"])  # the words were checked by whoever asked
    except (OSError, ValueError) as error:
        return str(error)


def guard(control: int, output: int, warden: int) -> None:
    """What a guard's process does, from its fork to its end."""
    os.setsid()
    die_with_parent(signal.SIGTERM)
    if os.getppid() == warden:
        Guard(socket.socket(fileno=control), output).run()


HANDED: Final = 2
LEAVING: Final = 2.0
"""Seconds that the guards have to end their commands when the house is gone."""


class Warden:
    """Its children are guards; whoever else becomes one has lost its guard, and is ended."""

    def __init__(self, house: socket.socket) -> None:
        self._house = house
        self._news = news_of(signal.SIGCHLD, signal.SIGTERM)
        self._family = Family()
        self._guards: set[int] = set()

    def run(self) -> None:
        """Until the house is gone, or says that it is enough."""
        while True:
            heard, ready = wait(self._news, None, self._house.fileno())
            self._bury()
            if signal.SIGTERM in heard or (ready and not self._take()):
                break
        self._house.close()
        self._leave()

    def _take(self) -> bool:
        """Fork a guard for what is handed to us; False when the house has nothing more to say."""
        word, handed, _, _ = socket.recv_fds(self._house, 1, HANDED)
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
            self._house.close()
            guard(control, output, me)
        finally:
            os._exit(0)

    def _bury(self) -> None:
        self._family.bury()
        self._guards -= self._family.ends.keys()
        self._family.ends.clear()
        if not self._family.contained:
            return
        strays = [one for one in self._family.children() if one not in self._guards]
        for one in (*strays, *(self._family.below(*strays) if strays else ())):
            send(one, signal.SIGKILL)

    def _leave(self) -> None:
        """The guards hear for themselves that the house is gone; told again, they need not wait for it."""
        for one in self._guards:
            send(one, signal.SIGTERM)
        deadline = time.monotonic() + LEAVING
        while not self._family.bury() and time.monotonic() < deadline:
            wait(self._news, deadline - time.monotonic())
        self._family.kill(0, self._news)


def main(number: int) -> None:
    """The program. What is meant for the house (Ctrl-C, a terminal that closes) is nothing to it."""
    for meant_for_others in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(meant_for_others, signal.SIG_IGN)
    die_with_parent(signal.SIGTERM)
    Warden(socket.socket(fileno=number)).run()
