"""The one way out of the walls: a proxy to the hosts that a person has named, open from the first command on."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.own_folder import OwnFolder
from greenroom.adapters.web.guard import Guard
from greenroom.adapters.web.proxy import Proxy, Visit
from greenroom.app.settings.schema import WebSettings
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.hosts import Closed, nothing_closed

DOOR: Final = "door"
MOST: Final = 20
"""Sentences about one command, at most."""

CLOSED: Final = re.compile(
    r"could ?n[o']t resolve|name or service not known|temporary failure in name resolution|network is unreachable"
    r"|nodename nor servname|getaddrinfo|dns error|name resolution",
    re.IGNORECASE,
)
"""What programs say that find no network."""

ALLOW: Final = 'A person can allow it: `hosts = ["{host}"]` below [sandbox] in their settings.'
NOTHING: Final = "greenroom: commands reach nothing over the network here. " + ALLOW.format(host="HOST")


class WayOut:
    """To `hosts`, if there are any, but for what is `closed` when it is opened. What is local, and which ports there
    are, is as for the `web`."""

    def __init__(self, hosts: Sequence[str], web: WebSettings) -> None:
        self.hosts = tuple(hosts)
        self.closed: Closed = nothing_closed
        self._web = web
        self._folder: OwnFolder | None = None
        self._proxy: Proxy | None = None
        self._opening = asyncio.Lock()
        self._said: dict[int, list[str]] = {}

    def door(self) -> Path | None:
        """Where it will be; None where there is none."""
        if self.hosts and self._folder is None:
            self._folder = OwnFolder(_doors())
        return self._folder.place / DOOR if self._folder is not None else None

    async def open(self) -> None:
        """From now on; `WorldFault` where that is not possible."""
        async with self._opening:
            door = self.door()
            if door is not None and self._proxy is None:
                guard = Guard(self._web.local, ports=self._web.ports, closed=self.closed)
                proxy = Proxy(guard, self.hosts, told=self._hear)
                await proxy.listen(door)
                self._proxy = proxy

    async def close(self) -> None:
        """No more."""
        proxy, folder = self._proxy, self._folder
        self._proxy = self._folder = None
        if proxy is not None:
            await proxy.close()
        if folder is not None:
            folder.close()

    def remarks(self, guard: int, printed: str) -> str:
        """What to add to the output of a command that has ended: of which hosts it was kept, and what a person can do.

        `guard` is the process that looked after it, `printed` the end of what it said itself.
        """
        if not self.hosts:
            return NOTHING if CLOSED.search(printed) else ""
        return "\n".join(dict.fromkeys(self._said.pop(guard, ())))

    def _hear(self, visit: Visit) -> None:
        if visit.verdict == "allowed":
            return
        said = self._said.setdefault(_parent(visit.caller), [])
        if len(said) < MOST:
            said.append(f"greenroom: {_told(visit, self.hosts)}")


def _told(visit: Visit, hosts: Sequence[str]) -> str:
    """The proxy's own words where they say more than that it is not on the list."""
    if visit.verdict == "refused" and visit.host and "none of the hosts" in visit.why:
        host = visit.host.removesuffix(":443").removesuffix(":80")
        return f"the host {host!r} is not allowed, only {', '.join(hosts)}. {ALLOW.format(host=host)}"
    return visit.why


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
