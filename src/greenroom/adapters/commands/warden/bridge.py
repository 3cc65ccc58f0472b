"""A way out of walls without a network: a port inside, behind which somebody outside talks to a unix socket.

The port is opened by a process that goes into the namespace for that, and comes from outside: so nothing of the house's
is to be seen within, and no program is needed there.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import threading
from contextlib import suppress
from typing import Final, TypedDict

from greenroom.adapters.commands.warden.family import die_with_parent
from greenroom.adapters.commands.warden.syscalls import NEW_NETWORK, NEW_USERS, enter

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
        enter(fcntl.ioctl(network, OWNING_USERS), NEW_USERS)
    enter(network, NEW_NETWORK)
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
