"""The search in one text after the other, within a time that is set before.

Python's own regular expressions cannot be stopped, hold up every other thread, and take for ever on patterns such as
`(a+)+b`. Those of `regex` have a timeout and let the others run, and they are the same language; an engine that is
always quick (RE2) knows no look-ahead and no back-reference, which models use.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

import regex

from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import record

LONGEST: Final = 1000
"""Characters of a pattern."""

LOOKED: Final = 10_000
"""Characters of a line in which one looks."""

SHOWN: Final = 300
"""Characters of a line that are shown."""


class TooSlow(ModelFault):
    """The time is over."""


@record
class Match:
    """A line in which it occurs, with those around it: numbers and texts."""

    line: int
    shown: tuple[tuple[int, str], ...]


class Hunt:
    """One search: a pattern, and until when it may be looked for."""

    def __init__(self, pattern: str, *, literal: bool, ignore_case: bool, seconds: float) -> None:
        if len(pattern) > LONGEST:
            raise ModelFault(f"The pattern has {len(pattern)} characters; {LONGEST} are allowed.")
        flags = regex.IGNORECASE if ignore_case else 0
        try:
            self._pattern = regex.compile(regex.escape(pattern) if literal else pattern, flags)
        except (regex.error, RecursionError, OverflowError) as error:
            why = f"{pattern!r} is no regular expression: {error}. Set literal to true to look for it as it is."
            raise ModelFault(why) from error
        self._plain = pattern if literal and not ignore_case else None
        self._end = time.monotonic() + seconds
        self.cut = False

    def matches(self, text: str, context: int, limit: int) -> list[Match]:
        """The lines in which it occurs, up to `limit`; `TooSlow` when the time is over."""
        lines = text.split("\n")
        found: list[Match] = []
        for number in self._found(lines):
            low, high = max(0, number - context), min(len(lines), number + context + 1)
            shown = tuple((place + 1, _shown(lines[place])) for place in range(low, high))
            found.append(Match(line=number + 1, shown=shown))
            if len(found) == limit:
                break
        return found

    def _found(self, lines: Sequence[str]) -> Iterator[int]:
        for number, line in enumerate(lines):
            self.cut = self.cut or len(line) > LOOKED
            if self._plain in line if self._plain is not None else self._occurs(line[:LOOKED]):
                yield number

    def _occurs(self, line: str) -> bool:
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.slow()
        try:
            return self._pattern.search(line, timeout=left, concurrent=True) is not None
        except TimeoutError:
            raise self.slow() from None

    def slow(self) -> TooSlow:
        """What is said then."""
        return TooSlow("The search took too long. Use a simpler pattern, a glob or a folder.")

    @property
    def over(self) -> bool:
        """Whether the time is."""
        return time.monotonic() > self._end


def _shown(line: str) -> str:
    line = line.removesuffix("\r")
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"
