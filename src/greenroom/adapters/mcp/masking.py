"""A server as its owner is shown it, where others may look on: what looks like a secret is covered, wherever it stands.

Not what a person reads before they trust a server: there nothing is covered but `headers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from greenroom.adapters.mcp.configuration import Server
from greenroom.adapters.mcp.filling import COVER, TELLING
from greenroom.core.base.records import evolve

_NAMED: Final = re.compile(r"([\w.-]+)(=|:\s*)(?=\S)")
"""How a value is named inside a word: `--api-key=…`, `TOKEN=…`, `Authorization: …`."""

_QUERY: Final = re.compile(r"([?&][^=&#]*=)[^&#]*")


def masked(server: Server) -> str:
    """Its command or address, and what it is given, in a line."""
    covered = evolve(server, args=tuple(_words(server.args)), url=_address(server.url))
    return covered.shown.removeprefix(f"{server.name}: ")


def _words(args: tuple[str, ...]) -> Iterator[str]:
    hides = False
    for word in args:
        flag = word.startswith("-")
        yield COVER if hides and not flag else _word(word)
        hides = flag and "=" not in word and bool(TELLING.search(word))


def _word(word: str) -> str:
    if "://" in word:
        return _address(word)
    named = _NAMED.match(word)
    return f"{named[0]}{COVER}" if named and TELLING.search(named[1]) else word


def _address(url: str) -> str:
    return _QUERY.sub(rf"\1{COVER}", url)
