"""The guard: the one place that decides whether an address on the network may be reached.

A name is resolved once, all its addresses are checked, and exactly those are dialled: a resolver that changes its
answer has nobody who asks it again. Pages, redirects, searches and the proxy all pass here.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from ipaddress import ip_address
from typing import Final

from greenroom.adapters.web.network import Network, SystemNetwork
from greenroom.adapters.web.ranges import CLOUD, IPAddress, special
from greenroom.core.base.hosts import BadHost, Closed, Host, host, nothing_closed
from greenroom.core.ports.web import WebFault

WEB: Final = frozenset({80, 443})
RESOLVING: Final = 10.0
"""Seconds for a name to become addresses."""

MOST: Final = 64
"""Addresses of one host that are looked at; who has more has something in mind."""

Judge = Callable[[IPAddress], str]


class Checked:
    """A host whose addresses may be dialled, and no others."""

    def __init__(self, asked: Host, addresses: Sequence[IPAddress], network: Network) -> None:
        self.host = asked
        self.addresses = tuple(addresses)
        self._network = network

    def open(self, address: str) -> socket.socket:
        """A socket to one of these addresses; `WebFault` for every other one."""
        wanted = ip_address(address.partition("%")[0])
        if wanted not in self.addresses:
            raise _barred(f"{address} is not what {str(self.host)!r} was checked for.")
        return self._network.open(wanted)

    async def connect(self, seconds: float) -> socket.socket:
        """A socket that is connected to the first address that answers."""
        last: OSError = OSError("it has no address")
        for one in self.addresses:
            try:
                return await self._dialled(one, seconds)
            except OSError as error:  # also when it took too long
                last = error
        raise WebFault("offline", f"Nobody answers at {str(self.host)!r} ({_why(last)}).")

    async def _dialled(self, one: IPAddress, seconds: float) -> socket.socket:
        made = self.open(str(one))
        try:
            async with asyncio.timeout(seconds):
                await asyncio.get_running_loop().sock_connect(made, (str(one), self.host.port))
        except BaseException:
            made.close()
            raise
        return made


class Guard:
    """`allowed` are hosts with their ports that a person lets be reached although they are local, `ports` those that
    may be reached beside the web's own. What is `closed` by a rule nothing opens; nor the metadata of a cloud."""

    def __init__(
        self,
        allowed: Iterable[str] = (),
        *,
        ports: Iterable[int] = (),
        network: Network | None = None,
        judge: Judge = special,
        closed: Closed = nothing_closed,
    ) -> None:
        self._allowed = frozenset(map(_with_port, allowed))
        self._ports = WEB.union(ports)
        self._network = network or SystemNetwork()
        self._judge = judge
        self._closed = closed

    async def check(self, asked: Host) -> Checked:
        """The host with the addresses that may be dialled; `WebFault` says why there are none."""
        if why := self._closed(asked):
            raise _barred(why)
        known = asked in self._allowed
        if not known and asked.port not in self._ports:
            raise _barred(
                f"The port {asked.port} of {asked.name!r} is none of the web's. A person can open it: "
                f'`ports = [{asked.port}]` or `local = ["{asked}"]` below [web] in their settings.'
            )
        addresses = await self._addresses(asked)
        for one in addresses:
            why = self._judge(one) or ("this machine" if self._network.is_own(one) else "")
            if why == CLOUD or (why and not known):
                opened = f'A person can allow it: `local = ["{asked}"]` below [web] in their settings.'
                told = f"{asked.name!r} is at {one} ({why}), which is not reached from here."
                raise _barred(f"{told} No setting opens it." if why == CLOUD else f"{told} {opened}")
        return Checked(asked, addresses, self._network)

    async def _addresses(self, asked: Host) -> Sequence[IPAddress]:
        try:
            return (ip_address(asked.name),)
        except ValueError:
            pass
        try:
            async with asyncio.timeout(RESOLVING):
                found = await self._network.resolve(asked.name, asked.port)
        except TimeoutError:
            raise WebFault("offline", f"The name {asked.name!r} was not resolved in {RESOLVING:g} s.") from None
        except (OSError, UnicodeError) as error:
            why = f"The host {asked.name!r} cannot be found ({_why(error)}). Is there a network? Is it spelled right?"
            raise WebFault("offline", why) from None
        if not 0 < len(found) <= MOST:
            raise WebFault("offline", f"The host {asked.name!r} has {len(found)} addresses.")
        return found


def _with_port(told: str) -> Host:
    """`WebFault` for what is not a host with its port."""
    try:
        read = host(told)
    except BadHost as why:
        raise WebFault("setup", f"`local` below [web]: {told!r} {why}.") from None
    if not read.port:
        raise WebFault("setup", f'`local` below [web]: {told!r} has no port. Write it like "localhost:8000".')
    return read


def _barred(why: str) -> WebFault:
    return WebFault("barred", why)


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not error.args:
        return "it took too long"
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
