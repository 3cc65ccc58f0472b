"""Addresses that nobody on the web has. Who leads there means this machine, its network or its cloud.

The list is written down: what Python calls global has left out metadata services, and differs by its version. In
IPv6 only what is handed out to the public (2000::/3) can pass at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

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
