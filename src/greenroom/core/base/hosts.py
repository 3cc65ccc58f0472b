"""Hosts: one reader of their names for all who decide about one or dial it.

A name that two programs could read in two ways is none: that is how filters are passed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

from greenroom.core.base.records import record

USUAL: Final = frozenset({0, 80, 443})
"""Ports that nobody has to name; 0 is none given."""

_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_NUMBER: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)")
_LONGEST: Final = 253


@record
class Host:
    """A host, or with `*.` all below a domain; `*` is every host. The port is 0 when none is given."""

    name: str
    port: int = 0

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"{name}:{self.port}" if self.port else name


Closed: TypeAlias = Callable[[Host], str]
"""Why nobody may go to a host, whatever opens it; nothing where that is not so."""


def nothing_closed(_: Host) -> str:
    """No rule closes anything."""
    return ""


class BadHost(ValueError):
    """Why this is no host."""


def host(value: str, *, pattern: bool = False) -> Host:
    """Read `name`, `name:port` or `[v6]:port`; `BadHost` for all that is not exactly that."""
    if not value.isascii():
        raise BadHost("has letters outside of ASCII; write the form that begins with xn--")
    lowered = value.lower()
    if lowered.startswith("["):
        name, bracket, rest = lowered[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise BadHost("is no address")
        return Host(name=_address(name), port=_port(rest[1:]) if rest else 0)
    name, colon, port = lowered.partition(":")
    number = _port(port) if colon else 0
    if pattern and name == "*":
        return Host(name=name, port=number)
    if pattern and name.startswith("*."):
        if "." not in name[2:]:
            raise BadHost("is every host below a whole top-level domain; name the domain")
        return Host(name=f"*.{_name(name[2:])}", port=number)
    return Host(name=_name(name), port=number)


def _port(text: str) -> int:
    if _PORT.fullmatch(text) is None or int(text) > 0xFFFF:
        raise BadHost(f"has {text!r} where a port should stand")
    return int(text)


def _address(text: str) -> str:
    if "%" in text:
        raise BadHost("names a network interface; leave out what follows the %")
    try:
        return str(IPv6Address(text))
    except ValueError as error:
        raise BadHost("is no IPv6 address") from error


def _name(text: str) -> str:
    labels = text.split(".")
    if len(text) > _LONGEST or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadHost("is no plain host name; only letters, digits, hyphens and single dots stand in one")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(IPv4Address(text))
        except ValueError as error:
            raise BadHost("is an address in an unusual form; write four numbers") from error
    return text


def loosens(pattern: Host, asked: Host) -> bool:
    """Whether a rule that loosens is meant for this host: to the letter, and on the usual ports unless it names one."""
    ports = {pattern.port} if pattern.port else USUAL
    return asked.port in ports and within(pattern.name, asked.name)


def within(pattern: str, name: str) -> bool:
    """Whether a name is meant by a pattern: the same, or below `*.domain`; `*` means all."""
    if pattern == "*":
        return True
    return name.endswith(pattern[1:]) if pattern.startswith("*.") else name == pattern
