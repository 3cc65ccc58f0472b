"""Somebody to ask: for text, and for a yes or a no. A terminal is one of them."""

from __future__ import annotations

import asyncio
from typing import Protocol, TypeAlias

from greenroom.core.base.records import record


@record
class Written:
    """What was typed."""

    text: str


@record
class Woken:
    """Something else happened while nobody had typed anything."""


@record
class Stopped:
    """Ctrl-C, with nothing typed."""


@record
class Gone:
    """There is nobody any more."""


Read: TypeAlias = Written | Woken | Stopped | Gone


class Person(Protocol):
    """Who talks. `attended` says that somebody really is there and can be asked; `chooses` that they can be asked for
    more than a yes or a no."""

    attended: bool
    chooses: bool

    async def write(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> Read:
        """A text, unless something else comes first."""
        ...

    async def agrees(self, tip: str, *, default: bool) -> bool:
        """A yes or a no."""
        ...

    async def replies(self, tip: str) -> str | None:
        """One line; None when somebody does not want to say anything, or nobody is there."""
        ...

    def stop(self) -> None:
        """Somebody pressed Ctrl-C."""
        ...


class Nobody:
    """Nobody is there: what was begun is ended, and that is all."""

    attended = False
    chooses = False

    async def write(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> Read:
        """Nothing."""
        return Gone()

    async def agrees(self, tip: str, *, default: bool) -> bool:
        """What is meant when nobody says anything."""
        return default

    async def replies(self, tip: str) -> str | None:
        """Nothing."""
        return None

    def stop(self) -> None:
        """There is nobody to stop."""
