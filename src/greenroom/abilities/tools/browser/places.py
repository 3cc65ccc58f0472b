"""Which hosts an errand is about: those that its task names, and those that are named beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Final

from greenroom.core.base.hosts import Host, host
from greenroom.core.ports.web import BadAddress, address

EVERY: Final = "*"
_URL: Final = re.compile(r"https?://[^\s<>\"'`，。、；）)\]}]+", re.IGNORECASE)
_END: Final = ".,;:!?"


def named(task: str, hosts: Iterable[str]) -> tuple[Host, ...]:
    """The hosts of the addresses in a task, and these; `BadAddress` for one that is none."""
    found = [address(one.rstrip(_END)).host for one in _URL.findall(task)]
    return tuple(dict.fromkeys((*found, *(address(f"https://{one}/").host for one in hosts))))


def reached(places: Sequence[Host], also: Sequence[str]) -> tuple[str, ...]:
    """What is let through: these hosts and all below them, and what a person has opened `also`. No host is every one:
    then somebody has agreed to the whole web."""
    if not places:
        return (EVERY,)
    return tuple(dict.fromkeys((*(one for place in places for one in _around(place)), *also)))


def _around(place: Host) -> Iterator[str]:
    yield str(place)
    port = f":{place.port}" if place.port not in (80, 443) else ""
    if not port:
        yield place.name if ":" not in place.name else f"[{place.name}]"  # on both ports that the web has
    with suppress(ValueError):
        ip_address(place.name)
        return
    if "." in place.name:
        yield f"*.{place.name}{port}"
    if place.name.startswith("www.") and place.name.count(".") > 1:
        yield f"{place.name.removeprefix('www.')}{port}"


def host_of(url: str) -> str:
    """The host of a page, as people know it; nothing where there is none."""
    try:
        found = address(url)
    except BadAddress:
        return ""
    usual = found.host.port in (80, 443)
    return str(host(found.host.name)) if usual and ":" not in found.host.name else str(found.host)
