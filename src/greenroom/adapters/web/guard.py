"""The guard: the one place that decides whether an address on the network may be reached.

A name is resolved once, all its addresses are checked, and exactly those are dialled: a resolver that changes its
answer has nobody who asks it again. Pages, redirects, searches and the proxy all pass here.

Addresses that the web does not have are written down: what Python calls global has left out metadata services, and
differs by its version. In IPv6 only what is handed out to the public (2000::/3) can pass at all.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, Protocol, TypeAlias

from greenroom.core.base.hosts import BadHost, Closed, Host, host, nothing_closed
from greenroom.core.ports.web import WebFault

IPAddress: TypeAlias = IPv4Address | IPv6Address

METADATA: Final = (
    "169.254.169.254",
    "169.254.170.2",
    "169.254.169.253",
    "169.254.0.23",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd00:ec2::253",
    "fd20:ce::254",
)
"""Where clouds tell a machine its secrets: Amazon, Google, Azure, Alibaba, Oracle, Tencent."""

CLOUD: Final = "a cloud's metadata"

_FOUR: Final[Mapping[str, str]] = {
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "a private network",
    "100.64.0.0/10": "a provider's shared network",
    "127.0.0.0/8": "this machine",
    "169.254.0.0/16": "the local link",
    "172.16.0.0/12": "a private network",
    "192.0.0.0/24": "reserved for protocols",
    "192.0.2.0/24": "for documentation",
    "192.31.196.0/24": "reserved for AS112",
    "192.52.193.0/24": "reserved for AMT",
    "192.88.99.0/24": "a 6to4 relay",
    "192.168.0.0/16": "a private network",
    "192.175.48.0/24": "reserved for AS112",
    "198.18.0.0/15": "for benchmarks",
    "198.51.100.0/24": "for documentation",
    "203.0.113.0/24": "for documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
}
_SIX: Final[Mapping[str, str]] = {
    "::/128": "this network",
    "::1/128": "this machine",
    "64:ff9b::/96": "an IPv4 address behind NAT64",
    "64:ff9b:1::/48": "an IPv4 address behind NAT64",
    "100::/64": "a black hole",
    "2001::/32": "an IPv4 address behind Teredo",
    "2001:2::/48": "for benchmarks",
    "2001::/23": "reserved for protocols",
    "2001:db8::/32": "for documentation",
    "2002::/16": "an IPv4 address behind 6to4",
    "2620:4f:8000::/48": "reserved for AS112",
    "3fff::/20": "for documentation",
    "5f00::/16": "reserved for segment routing",
    "fc00::/7": "a private network",
    "fe80::/10": "the local link",
    "fec0::/10": "a private network",
    "ff00::/8": "multicast",
}
_PUBLIC: Final = "2000::/3"
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})


def special(address: IPAddress) -> str:
    """What an address is for, if it is not one of the web's; else nothing."""
    if address in _metadata():
        return CLOUD
    for one in _inner(address):
        if meant := special(one):
            return meant
    four, six, public = _networks()
    if isinstance(address, IPv4Address):
        listed = next((what for network, what in four if address in network), "")
    else:
        listed = next((what for network, what in six if address in network), "" if address in public else "reserved")
    return listed or ("" if address.is_global and not address.is_multicast else "not public")


def _inner(address: IPAddress) -> Iterator[IPv4Address]:
    """The IPv4 addresses that an IPv6 address stands for."""
    if isinstance(address, IPv4Address):
        return
    whole = int(address)
    last = IPv4Address(whole & 0xFFFF_FFFF)
    if whole >> 32 in {0xFFFF, 0xFFFF_0000, 0x0064_FF9B << 64} or 0xFFFF < whole < 2**32:  # mapped, translated, NAT64
        yield last
    if whole >> 80 == 0x0064_FF9B_0001:  # a network's own NAT64: where the address lies depends on its prefix
        yield from (IPv4Address(whole >> shift & 0xFFFF_FFFF) for shift in (48, 40, 0))
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if whole >> 32 & 0xFFFF_FFFF in _ISATAP:
        yield last


@cache
def _metadata() -> frozenset[IPAddress]:
    return frozenset(map(ip_address, METADATA))


@cache
def _networks() -> tuple[tuple[tuple[IPv4Network, str], ...], tuple[tuple[IPv6Network, str], ...], IPv6Network]:
    four = tuple((IPv4Network(name), what) for name, what in _FOUR.items())
    six = tuple((IPv6Network(name), what) for name, what in _SIX.items())
    return four, six, IPv6Network(_PUBLIC)


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
        raise WebFault("offline", f"Nobody answers at {str(self.host)!r} ({why_of(last)}).")

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
            why = f"The host {asked.name!r} cannot be found ({why_of(error)}). Is there a network? Is it spelled right?"
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


def why_of(error: Exception) -> str:
    """What the system says of an error."""
    if isinstance(error, TimeoutError) and not error.args:
        return "it took too long"
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
