"""The network as the guard sees it: names become addresses, addresses become sockets, and some are this machine's."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final, Protocol

from greenroom.adapters.web.ranges import IPAddress

ANY_PORT: Final = 9


class Network(Protocol):
    """The one way out."""

    async def resolve(self, name: str, port: int) -> Sequence[IPAddress]:
        """All addresses of a host; `OSError` when it has none."""
        ...

    def is_own(self, address: IPAddress) -> bool:
        """Whether an address is this machine's, whatever it looks like."""
        ...

    def open(self, address: IPAddress) -> socket.socket:
        """A socket to reach it with, not connected yet."""
        ...


class SystemNetwork:
    """This machine's."""

    async def resolve(self, name: str, port: int) -> Sequence[IPAddress]:
        """As the system resolves it."""
        found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
        # A link-local address may name an interface behind a %.
        return tuple(dict.fromkeys(ip_address(str(one[4][0]).partition("%")[0]) for one in found))

    def is_own(self, address: IPAddress) -> bool:
        """Who sends to one of its own addresses sends from that very one. Nothing is sent to find that out."""
        try:
            with socket.socket(_family(address), socket.SOCK_DGRAM) as probe:
                probe.connect((str(address), ANY_PORT))
                return ip_address(str(probe.getsockname()[0]).partition("%")[0]) == address
        except OSError:
            return False  # there is no way to it, so it is not here

    def open(self, address: IPAddress) -> socket.socket:
        """Of the address's own family."""
        made = socket.socket(_family(address), socket.SOCK_STREAM)
        made.setblocking(False)
        return made


def _family(address: IPAddress) -> socket.AddressFamily:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6
