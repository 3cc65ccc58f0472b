"""Reading on in a long text: so many lines from one on, or those in which something stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import msgspec

from greenroom.abilities.tools.output.long import WORDS, cut
from greenroom.core.base.records import Data
from greenroom.core.ports.tool import SHOWN

LINES: Final = 100
MOST: Final = 1000
LONGEST: Final = 2000
"""Bytes of a line, where several are read."""

AROUND: Final = 300
"""Characters on either side of what was looked for, in a line that is too long."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be read: `pattern` is text to look for, several of them with `|` between."""

    from_line: Annotated[int, msgspec.Meta(ge=1)] = 1
    lines: Annotated[int, msgspec.Meta(ge=1, le=MOST)] = LINES
    pattern: str = ""


PARAMETERS: Final[Data] = {
    "from_line": {"type": "integer", "minimum": 1, "description": "The first line to read; 1 is the first of all."},
    "lines": {"type": "integer", "minimum": 1, "maximum": MOST, "description": f"How many lines; {LINES} if left out."},
    "pattern": {
        "type": "string",
        "description": "Only lines with this text in them, whatever its case; several texts with | between. "
        "It is no regular expression.",
    },
}
"""The same as a model is told of it."""


def read(text: str, page: Page, shown: int = SHOWN) -> str:
    """The page, with the numbers of its lines and where to go on."""
    lines = text.splitlines()
    wanted = [one.lower() for one in page.pattern.split("|") if one.strip()]
    numbered = enumerate(lines[page.from_line - 1 :], page.from_line)
    found = _matching(numbered, wanted) if wanted else numbered
    told, last, more = _fitted(found, page.lines, max(shown - WORDS, WORDS))
    if not told:
        return _nothing(page, len(lines))
    rest = f"There is more: from_line={last + 1}." if more else "That was the last."
    what = f"Lines with {page.pattern!r}" if wanted else f"Lines {page.from_line} to {last}"
    return "\n".join((*told, f"[{what}, of {len(lines)}. {rest}]"))


def _nothing(page: Page, count: int) -> str:
    if page.pattern:
        return f"[No line from {page.from_line} on has {page.pattern!r} in it. There are {count} lines.]"
    return f"[There is no line {page.from_line}: there are {count}.]"


def _matching(numbered: Iterable[tuple[int, str]], wanted: list[str]) -> Iterator[tuple[int, str]]:
    for number, line in numbered:
        low = line.lower()
        places = [place for one in wanted if (place := low.find(one)) >= 0]
        if places:
            yield number, _around(line, min(places))


def _around(line: str, place: int) -> str:
    """Of a very long line what stands around the first thing that was looked for."""
    if len(line) <= LONGEST // 4:
        return line
    begin, end = max(0, place - AROUND), place + AROUND
    return f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"


def _fitted(numbered: Iterable[tuple[int, str]], most: int, room: int) -> tuple[list[str], int, bool]:
    """As many lines as are asked for and have room, the number of the last, and whether there are more."""
    told: list[str] = []
    last = 0
    bound = room - 100 if most == 1 else LONGEST
    for number, line in numbered:
        numbered_line = f"{number}: {cut(line, bound)}"
        room -= len(numbered_line.encode(errors="replace")) + 1
        if len(told) == most or room < 0:
            return told, last, True
        told.append(numbered_line)
        last = number
    return told, last, False
