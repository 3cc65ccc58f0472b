"""A browser that is led through pages: what can be asked of it and what is seen. No third-party type crosses this port.

What is seen is a stranger's word: data to whoever reads it, never an instruction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record


class BrowserFault(WorldFault):
    """There is no browser, or it is gone. The sentence says what to do."""


# ---------------------------------------------------------------------------------------------- what is asked


@record
class Open:
    """Go to an address, as `core.ports.web` writes it."""

    url: str


@record
class Click:
    """Click what is marked so in what was seen last."""

    ref: str


@record
class Type:
    """Fill in a field, in the place of what stands there; with `submit` press Enter then."""

    ref: str
    text: str
    submit: bool = False


@record
class Scroll:
    """Move the page by most of a screen."""

    down: bool = True


@record
class Back:
    """To the page before; what was opened in a tab of its own is closed."""


Move: TypeAlias = Open | Click | Type | Scroll | Back


# ---------------------------------------------------------------------------------------------- what is seen


@record
class Sight:
    """A page as somebody hears it who cannot see: its roles, names and texts, with a mark for what can be used."""

    url: str
    title: str
    text: str


class Tab(Protocol):
    """A browser with one tab in front."""

    async def do(self, move: Move) -> None:
        """Do it, and wait until the page is quiet. `ModelFault` says why it cannot be done, `BrowserFault` that there
        is no browser any more."""

    async def look(self) -> Sight:
        """What is there now."""

    async def shot(self) -> bytes:
        """A picture of it (JPEG); nothing where none can be made."""

    @property
    def visited(self) -> Sequence[str]:
        """The addresses of all pages that were shown, each once, in their order."""

    @property
    def refused(self) -> Mapping[str, str]:
        """The hosts that pages asked for and that were not reached, with the reason."""


class Browser(Protocol):
    """Something that opens a browser. It is closed, and all of it dead, when the block ends, however it ends."""

    def opened(self, hosts: Sequence[str]) -> AbstractAsyncContextManager[Tab]:
        """A new one, of which nothing is kept, that reaches these hosts: names, `*.domain`, or `*` for the web."""


@record
class Gate:
    """The one way out: a proxy at a port of this machine, for those who have its token. `refused` grows with use."""

    port: int
    user: str
    token: str
    refused: Mapping[str, str]


class Gates(Protocol):
    """Something that opens a way out to some hosts, for as long as a block lasts."""

    def __call__(self, hosts: Sequence[str], /) -> AbstractAsyncContextManager[Gate]:
        """Open it."""


class Album(Protocol):
    """Where pictures are kept for people."""

    async def keep(self, errand: str, number: int, picture: bytes) -> str:
        """Keep one of an errand; the folder in which all of its pictures are, or nothing when it cannot be kept."""
