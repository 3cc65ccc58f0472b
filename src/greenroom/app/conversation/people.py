"""Somebody to ask: for text, and for a yes or a no. A terminal is one of them; callables can take its place."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Protocol, TypeAlias, cast

from greenroom.core.base.records import record

Multiline: TypeAlias = Callable[[str, bool], str] | Callable[[str], str]
"""Asks for text under a tip; it may be told whether to say something about an empty one."""

Confirm: TypeAlias = Callable[[str, bool], bool]
"""Asks for a yes or a no; the second argument is what an empty answer means."""


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


class Callables:
    """A person behind two functions: a program, a window, a web page. `EOFError` says that nobody is there any more.

    Without them it is somebody who types: lines up to an empty one, and yes or no.
    """

    attended = True
    chooses = False

    def __init__(self, multiline: Multiline | None = None, confirm: Confirm | None = None) -> None:
        self._multiline = both(multiline or until_empty(input))
        self._confirm = confirm or agreed

    async def write(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> Read:
        """Ask; what happens meanwhile is heard of afterwards."""
        try:
            return Written(text=await asyncio.to_thread(self._multiline, tip, print_on_empty))
        except EOFError:
            return Gone()
        except KeyboardInterrupt:
            return Stopped()

    async def agrees(self, tip: str, *, default: bool) -> bool:
        return await asyncio.to_thread(confirmed, self._confirm, tip, default=default)

    async def replies(self, tip: str) -> str | None:
        read = await self.write(tip, asyncio.Event())
        return read.text if isinstance(read, Written) else None

    def stop(self) -> None:
        """A function that waits for a person cannot be stopped."""


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


def both(multiline: Multiline) -> Callable[[str, bool], str]:
    """The function with two arguments, also where it takes only a tip."""
    try:
        inspect.signature(multiline).bind("", True)
    except (TypeError, ValueError):
        one = cast("Callable[[str], str]", multiline)
        return lambda tip, _: one(tip)
    return cast("Callable[[str, bool], str]", multiline)


def until_empty(line: Callable[[str], str] | None, plain: Callable[[str], str] = input) -> Callable[[str], str]:
    """Lines of text up to an empty one; where they cannot be read one by one, what plain input gives."""
    if line is None:
        return plain

    def read(tip: str) -> str:
        found = [line(tip)]
        while found[-1].strip():
            found.append(line(""))
        return "\n".join(found[:-1])

    return read


def agreed(tip: str, default: bool) -> bool:
    """A yes or a no that is typed; an empty line is the default."""
    word = input(f"{tip} [{'Y/n' if default else 'y/N'}] ").strip().lower()
    return word in ("y", "yes") if word else default


def confirmed(callback: Confirm, tip: str, *, default: bool = True) -> bool:
    """A yes or a no of whoever is asked; who has no answer means the default."""
    try:
        return callback(tip, default)
    except EOFError:
        return default
