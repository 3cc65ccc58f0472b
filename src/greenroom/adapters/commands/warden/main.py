"""The warden's own loop: forks a guard for each pair of a control socket and an output pipe that it is handed."""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import Final

from greenroom.adapters.commands.warden.family import Family, die_with_parent, news_of, send, wait
from greenroom.adapters.commands.warden.guard import guard

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
