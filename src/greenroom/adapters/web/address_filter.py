"""The address filter: the only place that decides whether a network address may be reached.

A name is resolved once, all its addresses are checked, and only those are dialled. So a resolver that changes its
answer has no effect. Pages, redirects, searches and the proxy all use it.

Special addresses are listed here: Python's `is_global` differs between versions and omits metadata services. In IPv6,
only public addresses (2000::/3) can pass.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, Protocol, TypeAlias

from greenroom.core.base.hosts import BadHost, Host, HostBlocker, block_no_host, parse_host
from greenroom.core.ports.web import WebFault

IPAddress: TypeAlias = IPv4Address | IPv6Address

METADATA_ADDRESSES: Final = (
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
"""Metadata services of clouds, which hold secrets: Amazon, Google, Azure, Alibaba, Oracle, Tencent."""

METADATA_NAMES: Final = (
    *("metadata", "instance-data", "rancher-metadata", "metadata.goog", "metadata.google.internal"),
    *("instance-data.ec2.internal", "metadata.azure.internal", "metadata.azure.com", "metadata.tencentyun.com"),
    *("metadata.packet.net", "metadata.platformequinix.com"),
)
"""Names of these services. They are refused before any lookup, with all names below them."""

CLOUD_METADATA: Final = "a cloud's metadata"

_SPECIAL_IPV4: Final[Mapping[str, str]] = {
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
_SPECIAL_IPV6: Final[Mapping[str, str]] = {
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
_PUBLIC_IPV6: Final = "2000::/3"
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})


def is_metadata_name(name: str) -> bool:
    """Return whether a host name belongs to a metadata service: a known one, or `metadata.….internal`."""
    labels = name.split(".")
    private = labels[-1] == "internal" and not {"metadata", "instance-data"}.isdisjoint(labels)
    return private or any(name == known or name.endswith(f".{known}") for known in METADATA_NAMES)


def classify_address(address: IPAddress) -> str:
    """Return the purpose of a special address; empty for a public one."""
    if address in _parse_metadata_addresses():
        return CLOUD_METADATA
    for inner in _find_inner_addresses(address):
        if inner_purpose := classify_address(inner):
            return inner_purpose
    ipv4, ipv6, public = _parse_networks()
    if isinstance(address, IPv4Address):
        purpose = next((what for network, what in ipv4 if address in network), "")
    else:
        purpose = next((what for network, what in ipv6 if address in network), "" if address in public else "reserved")
    return purpose or ("" if address.is_global and not address.is_multicast else "not public")


def _find_inner_addresses(address: IPAddress) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses that are embedded in an IPv6 address."""
    if isinstance(address, IPv4Address):
        return
    whole = int(address)
    last = IPv4Address(whole & 0xFFFF_FFFF)
    if whole >> 32 in {0xFFFF, 0xFFFF_0000, 0x0064_FF9B << 64} or 0xFFFF < whole < 2**32:  # mapped, translated, NAT64
        yield last
    if whole >> 80 == 0x0064_FF9B_0001:  # local NAT64: the position of the address depends on the prefix length
        yield from (IPv4Address(whole >> shift & 0xFFFF_FFFF) for shift in (48, 40, 0))
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if whole >> 32 & 0xFFFF_FFFF in _ISATAP:
        yield last


@cache
def _parse_metadata_addresses() -> frozenset[IPAddress]:
    return frozenset(map(ip_address, METADATA_ADDRESSES))


@cache
def _parse_networks() -> tuple[tuple[tuple[IPv4Network, str], ...], tuple[tuple[IPv6Network, str], ...], IPv6Network]:
    ipv4 = tuple((IPv4Network(name), what) for name, what in _SPECIAL_IPV4.items())
    ipv6 = tuple((IPv6Network(name), what) for name, what in _SPECIAL_IPV6.items())
    return ipv4, ipv6, IPv6Network(_PUBLIC_IPV6)


PROBE_PORT: Final = 9


class Network(Protocol):
    """Access to the network."""

    async def resolve(self, name: str, port: int) -> Sequence[IPAddress]:
        """Return all addresses of a host. Raise `OSError` if there are none."""
        ...

    def is_own(self, address: IPAddress) -> bool:
        """Return whether an address belongs to this machine."""
        ...

    def open(self, address: IPAddress) -> socket.socket:
        """Return an unconnected socket for an address."""
        ...


class SystemNetwork:
    """The network of this machine."""

    async def resolve(self, name: str, port: int) -> Sequence[IPAddress]:
        """Resolve a name with the system's resolver."""
        entries = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
        # A link-local address may name an interface after a %.
        return tuple(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in entries))

    def is_own(self, address: IPAddress) -> bool:
        """Return whether the system would send from this address to itself. Nothing is sent."""
        try:
            with socket.socket(_find_family(address), socket.SOCK_DGRAM) as probe:
                probe.connect((str(address), PROBE_PORT))
                return ip_address(str(probe.getsockname()[0]).partition("%")[0]) == address
        except OSError:
            return False  # it is unreachable, so it is not this machine

    def open(self, address: IPAddress) -> socket.socket:
        """Return a non-blocking socket of the address's family."""
        connection = socket.socket(_find_family(address), socket.SOCK_STREAM)
        connection.setblocking(False)
        return connection


def _find_family(address: IPAddress) -> socket.AddressFamily:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


WEB_PORTS: Final = frozenset({80, 443})
RESOLVE_TIMEOUT_S: Final = 10.0
"""How long resolving a name may take, in seconds."""

MAX_ADDRESSES: Final = 64
"""How many addresses a host may have. More are suspicious."""

AddressClassifier = Callable[[IPAddress], str]


async def is_metadata_host(host: str) -> bool:
    """Return whether a host, in any spelling, is a metadata service of a cloud. A host that is not found is none."""
    if is_metadata_name(host.rstrip(".")):
        return True
    try:
        async with asyncio.timeout(RESOLVE_TIMEOUT_S):
            addresses = await SystemNetwork().resolve(host, PROBE_PORT)
    except (OSError, UnicodeError):
        return False
    return CLOUD_METADATA in map(classify_address, addresses)


class CheckedHost:
    """A host and the addresses that may be dialled."""

    def __init__(self, host: Host, addresses: Sequence[IPAddress], network: Network) -> None:
        self.host = host
        self.addresses = tuple(addresses)
        self._network = network

    def open(self, address: str) -> socket.socket:
        """Return a socket for one of these addresses. Raise `WebFault` for any other."""
        wanted = ip_address(address.partition("%")[0])
        if wanted not in self.addresses:
            raise _make_barred_fault(f"{address} is not what {str(self.host)!r} was checked for.")
        return self._network.open(wanted)

    async def connect(self, seconds: float) -> socket.socket:
        """Return a socket that is connected to the first address that answers."""
        failure: OSError = OSError("it has no address")
        for address in self.addresses:
            try:
                return await self._dial(address, seconds)
            except OSError as error:  # includes timeouts
                failure = error
        raise WebFault("offline", f"No server answers at {str(self.host)!r} ({describe_error(failure)}).")

    async def _dial(self, address: IPAddress, seconds: float) -> socket.socket:
        connection = self.open(str(address))
        try:
            async with asyncio.timeout(seconds):
                await asyncio.get_running_loop().sock_connect(connection, (str(address), self.host.port))
        except BaseException:
            connection.close()
            raise
        return connection


class AddressFilter:
    """The address filter. `allowed` are local hosts with ports that a person allows, `ports` further allowed ports.
    Hosts that `closed` rejects, and cloud metadata, are never reached."""

    def __init__(
        self,
        allowed: Iterable[str] = (),
        *,
        ports: Iterable[int] = (),
        network: Network | None = None,
        classify: AddressClassifier = classify_address,
        closed: HostBlocker = block_no_host,
    ) -> None:
        self._allowed = frozenset(map(_parse_host_with_port, allowed))
        self._ports = WEB_PORTS.union(ports)
        self._network = network or SystemNetwork()
        self._classify = classify
        self._closed = closed

    async def check(self, wanted: Host) -> CheckedHost:
        """Check a host and return its addresses. Raise `WebFault` with the reason if it is refused."""
        if why := self._closed(wanted):
            raise _make_barred_fault(why)
        if is_metadata_name(wanted.name):
            raise _make_barred_fault(f"{wanted.name!r} is {CLOUD_METADATA}, which is not reached. No setting opens it.")
        is_allowed = wanted in self._allowed
        if not is_allowed and wanted.port not in self._ports:
            raise _make_barred_fault(
                f"The port {wanted.port} of {wanted.name!r} is not allowed. A person can open it: "
                f'`ports = [{wanted.port}]` or `local = ["{wanted}"]` below [web] in their settings.'
            )
        addresses = await self._resolve(wanted)
        for address in addresses:
            why = self._classify(address) or ("this machine" if self._network.is_own(address) else "")
            if why == CLOUD_METADATA or (why and not is_allowed):
                hint = f'A person can allow it: `local = ["{wanted}"]` below [web] in their settings.'
                problem = f"{wanted.name!r} is at {address} ({why}), which is not reached from here."
                raise _make_barred_fault(
                    f"{problem} No setting opens it." if why == CLOUD_METADATA else f"{problem} {hint}"
                )
        return CheckedHost(wanted, addresses, self._network)

    async def _resolve(self, wanted: Host) -> Sequence[IPAddress]:
        try:
            return (ip_address(wanted.name),)
        except ValueError:
            pass
        try:
            async with asyncio.timeout(RESOLVE_TIMEOUT_S):
                addresses = await self._network.resolve(wanted.name, wanted.port)
        except TimeoutError:
            raise WebFault(
                "offline", f"The name {wanted.name!r} was not resolved in {RESOLVE_TIMEOUT_S:g} s."
            ) from None
        except (OSError, UnicodeError) as error:
            why = (
                f"The host {wanted.name!r} cannot be found ({describe_error(error)}). Is there a network? "
                "Is it spelled right?"
            )
            raise WebFault("offline", why) from None
        if not 0 < len(addresses) <= MAX_ADDRESSES:
            raise WebFault("offline", f"The host {wanted.name!r} has {len(addresses)} addresses.")
        return addresses


def _parse_host_with_port(text: str) -> Host:
    """Parse a host with a port. Raise `WebFault` if it is invalid."""
    try:
        parsed = parse_host(text)
    except BadHost as why:
        raise WebFault("setup", f"`local` below [web]: {text!r} {why}.") from None
    if not parsed.port:
        raise WebFault("setup", f'`local` below [web]: {text!r} has no port. Write it like "localhost:8000".')
    return parsed


def _make_barred_fault(why: str) -> WebFault:
    return WebFault("barred", why)


def describe_error(error: Exception) -> str:
    """Return the system's description of an error."""
    if isinstance(error, TimeoutError) and not error.args:
        return "it took too long"
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
