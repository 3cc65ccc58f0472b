"""The one way out of the walls: a proxy to the hosts that a person has named, open from the first command on that may.

Some hosts are open to every command, as the person's settings say; others to one command only, while it runs, because
the policy has said yes to that very call. Who asks at the proxy is known by the kernel's word: it was begun by the
command's guard.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.adapters.sandbox.session import OwnFolder
from greenroom.adapters.web.guard import Guard
from greenroom.adapters.web.proxy import Proxy, Visit, Way, pattern
from greenroom.app.hands.kept_from import KeptFrom, nothing_at_all
from greenroom.app.settings.schema import WebSettings
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.hosts import BadHost, Closed, Host, host, nothing_closed

DOOR: Final = "door"

CLOSED: Final = re.compile(
    r"could ?n[o']t resolve|name or service not known|temporary failure in name resolution|network is unreachable"
    r"|nodename nor servname|getaddrinfo|dns error|name resolution",
    re.IGNORECASE,
)
"""What programs say that find no network."""

ClosedTo: TypeAlias = Callable[[Sequence[str]], Closed]
"""What is closed to who was let to hosts by these names."""


def _closed_to_nobody(_: Sequence[str]) -> Closed:
    return nothing_closed


class WayOut:
    """To `hosts` for all commands, and to what one of them was let; but for what is `closed` when it is. What is local,
    and which ports there are, is as for the `web`."""

    def __init__(self, hosts: Sequence[str], web: WebSettings) -> None:
        self.hosts = tuple(hosts)
        self.closed: ClosedTo = _closed_to_nobody
        self._web = web
        self._folder: OwnFolder | None = None
        self._proxy: Proxy | None = None
        self._opening = asyncio.Lock()
        self._let: dict[int, Way] = {}
        self._callers: dict[int, set[int]] = {}
        self._kept: dict[int, KeptFrom] = {}

    async def door(self, hosts: tuple[str, ...] = ()) -> str:
        """Where it is, from now on; empty for who may reach nothing."""
        if not (self.hosts or hosts):
            return ""
        tuple(map(_named, hosts))
        async with self._opening:
            if self._folder is None:
                self._folder = OwnFolder(_doors())
            door = self._folder.place / DOOR
            if self._proxy is None:
                proxy = Proxy(self._guard(self.hosts), self.hosts, own=self._way, told=self._hear)
                await proxy.listen(door)
                self._proxy = proxy
        return str(door)

    def let(self, guard: int, hosts: tuple[str, ...]) -> None:
        """To these too, until it ends. A number may have been another command's: nothing is left of what that had."""
        self.end(guard)
        self._kept[guard] = KeptFrom(everybody=self.hosts, own=hosts)
        if hosts:
            named = (*self.hosts, *hosts)
            patterns = (*map(pattern, self.hosts), *map(_named, hosts))
            self._let[guard] = Way(hosts=patterns, guard=self._guard(named))

    def lets(self, guard: int) -> bool:
        """Whether it was let to hosts of its own."""
        return guard in self._let

    def remarks(self, guard: int, printed: str) -> str:
        """What to add to the output of a command that has ended: of which hosts it was kept, and what to do."""
        kept = self._kept.get(guard)
        if kept is None or kept.nowhere:
            return nothing_at_all() if CLOSED.search(printed) else ""
        return kept.told()

    def end(self, guard: int) -> None:
        """What it was let is over, and whatever still goes on for it is cut."""
        self._let.pop(guard, None)
        self._kept.pop(guard, None)
        callers = self._callers.pop(guard, None)
        if callers and self._proxy is not None:
            self._proxy.cut(callers)

    async def close(self) -> None:
        """No more."""
        proxy, folder = self._proxy, self._folder
        self._proxy = self._folder = None
        if proxy is not None:
            await proxy.close()
        if folder is not None:
            folder.close()

    def _guard(self, named: Sequence[str]) -> Guard:
        return Guard(self._web.local, ports=self._web.ports, closed=self.closed(named))

    def _way(self, caller: int) -> Way | None:
        """What whoever asks may reach, if it is more than what all may."""
        guard = _parent(caller)
        if guard in self._kept:
            self._callers.setdefault(guard, set()).add(caller)
        return self._let.get(guard)

    def _hear(self, visit: Visit) -> None:
        kept = self._kept.get(_parent(visit.caller))
        if kept is not None and visit.verdict != "allowed":
            kept.add(visit)


def _named(told: str) -> Host:
    """One host to the letter: a pattern would be more than anybody was asked about."""
    try:
        return host(told)
    except BadHost as why:
        raise WorldFault(f'{told!r} is no host: it {why}. Name it like "pypi.org" or "pypi.org:8443".') from None


def _parent(pid: int) -> int:
    """Whoever connects for a command was begun by its guard."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
    return 0


def _doors() -> Path:
    """A folder of ours, with a short name: that of a socket has 108 bytes at most."""
    folder = Path(tempfile.gettempdir(), f"greenroom-doors-{os.geteuid()}")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        raise WorldFault(f"{str(folder)!r} is not ours. Remove it.")
    return folder
