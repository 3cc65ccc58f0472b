"""A link: one life of a server, from its start to its end, as the house sees it. Here no word of the SDK is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from greenroom.adapters.mcp.catalogue import Listing
from greenroom.adapters.mcp.configuration import Filled
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, record


class CallLost(WorldFault):
    """A call went out and no answer came back: nobody knows whether it was done."""


@record
class Part:
    """An image, a recording or a file that came with an answer: kept, but told of in words only."""

    media_type: str
    bytes: int
    data: str = ""


@record
class Answer:
    """What a call came to. `failed` is the server's own word that it did not work."""

    text: str
    failed: bool = False
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Starting:
    """What a link is made from. `folder` is where a command begins; `changed` is called when its tools are others."""

    filled: Filled
    folder: Path
    changed: Callable[[], None]


class Link(Protocol):
    """A server that has introduced itself. What it cannot do is a `WorldFault`."""

    @property
    def over(self) -> str:
        """Why it has ended, in a sentence; empty while it lives."""
        ...

    @property
    def version(self) -> str:
        """The version of the protocol that both speak."""
        ...

    async def tools(self) -> Listing:
        """All its tools."""
        ...

    async def call(self, tool: str, arguments: Data) -> Answer:
        """Make a call, once; `CallLost` if it went out and no answer came. Cancelled, the server is told so."""
        ...

    async def alive(self, seconds: float) -> bool:
        """Whether it answers within so many seconds."""
        ...

    async def close(self, *, now: bool = False) -> None:
        """End it: with all its processes if they are ours, and without waiting for it to agree if `now`."""
        ...
