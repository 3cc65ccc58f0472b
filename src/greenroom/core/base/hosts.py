"""Host names: one parser for every module that checks or dials a host.

The parser refuses ambiguous names. A name that two programs read differently could bypass a filter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.records import record

USUAL_PORTS: Final = frozenset({0, 80, 443})
"""Ports that a rule need not name. 0 means that no port was given."""

_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_NUMBER: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)")
_MAX_NAME_CHARS: Final = 253


@record
class Host:
    """A host. `*.domain` means every host below the domain, `*` every host. Port 0 means that none was given."""

    name: str
    port: int = 0

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"{name}:{self.port}" if self.port else name


HostBlocker: TypeAlias = Callable[[Host], str]
"""Returns why a host is blocked regardless of any rule that allows it, or an empty string."""


def block_no_host(_: Host) -> str:
    """Block nothing."""
    return ""


class BadHost(GreenroomError, ValueError):
    """The text is not a valid host. The message completes the sentence "HOST …"."""


def parse_host(value: str, *, pattern: bool = False) -> Host:
    """Parse `name`, `name:port` or `[v6]:port`. Raise `BadHost` for anything else."""
    if not value.isascii():
        raise BadHost("hosts.not_ascii")
    lowered = value.lower()
    if lowered.startswith("["):
        name, bracket, rest = lowered[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise BadHost("hosts.bad_address")
        return Host(name=_parse_ipv6(name), port=_parse_port(rest[1:]) if rest else 0)
    name, colon, port = lowered.partition(":")
    number = _parse_port(port) if colon else 0
    if pattern and name == "*":
        return Host(name=name, port=number)
    if pattern and name.startswith("*."):
        if "." not in name[2:]:
            raise BadHost("hosts.top_level")
        return Host(name=f"*.{_parse_name(name[2:])}", port=number)
    return Host(name=_parse_name(name), port=number)


def _parse_port(text: str) -> int:
    if _PORT.fullmatch(text) is None or int(text) > 0xFFFF:
        raise BadHost("hosts.bad_port", text=text)
    return int(text)


def _parse_ipv6(text: str) -> str:
    if "%" in text:
        raise BadHost("hosts.interface")
    try:
        return str(IPv6Address(text))
    except ValueError as error:
        raise BadHost("hosts.bad_ipv6") from error


def _parse_name(text: str) -> str:
    labels = text.split(".")
    if len(text) > _MAX_NAME_CHARS or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadHost("hosts.bad_name")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(IPv4Address(text))
        except ValueError as error:
            raise BadHost("hosts.odd_ipv4") from error
    return text


def allows_host(pattern: Host, host: Host) -> bool:
    """Return whether an allowing rule applies to the host: same name, and a usual port unless the rule names one."""
    ports = {pattern.port} if pattern.port else USUAL_PORTS
    return host.port in ports and matches_host_pattern(pattern.name, host.name)


def matches_host_pattern(pattern: str, name: str) -> bool:
    """Return whether a pattern covers a name: equal, below `*.domain`, or `*`."""
    if pattern == "*":
        return True
    return name.endswith(pattern[1:]) if pattern.startswith("*.") else name == pattern
