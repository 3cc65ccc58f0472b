"""Searching many files for a text or a regular expression, within a time that is set before.

Python's own regular expressions cannot be stopped, hold up every other thread, and take for ever on patterns such as
`(a+)+b`. Those of `regex` have a timeout and let the others run, and they are the same language; an engine that is
always quick (RE2) knows no look-ahead and no back-reference, which models use.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import regex

from greenroom.abilities.tools.files.text import Unreadable, decoded
from greenroom.core.base.errors import ModelFault
from greenroom.core.ports.executor import Outcome
from greenroom.core.ports.files import FileFault, Files, Walk
from greenroom.core.ports.tool import SHOWN

PATTERNS: Final = 64
"""Patterns that braces may stand for."""

BRACES: Final = re.compile(r"\{([^{}]*)\}")


def expanded(glob: str) -> list[str]:
    """One pattern for each choice that its braces give; none for none."""
    found, waiting = [], [glob.strip()] if glob.strip() else []
    while waiting:
        pattern = waiting.pop()
        braces = BRACES.search(pattern)
        if braces is None:
            found.append(pattern)
            continue
        waiting += [pattern[: braces.start()] + one + pattern[braces.end() :] for one in braces[1].split(",")]
        if len(waiting) + len(found) > PATTERNS:
            raise ModelFault(f"The pattern {glob[:100]!r} stands for more than {PATTERNS} patterns. Use a simpler one.")
    return sorted(found)


LONGEST: Final = 1000
"""Characters of a pattern."""

LOOKED: Final = 10_000
"""Characters of a line in which one looks."""

WIDE: Final = 300
"""Characters of a line that are shown."""


SLOW: Final = "The search took too long. Use a simpler pattern, a glob or a folder."


class TooSlow(ModelFault):
    """The time is over."""


Match: TypeAlias = tuple[int, tuple[tuple[int, str], ...]]
"""The number of a line in which it occurs, and the lines around it: numbers and texts."""


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
            around = enumerate((line.removesuffix("\r") for line in lines[low:high]), low + 1)
            shown = tuple((place, line if len(line) <= WIDE else f"{line[:WIDE]}…") for place, line in around)
            found.append((number + 1, shown))
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
            raise TooSlow(SLOW)
        try:
            return self._pattern.search(line, timeout=left, concurrent=True) is not None
        except TimeoutError:
            raise TooSlow(SLOW) from None

    @property
    def over(self) -> bool:
        """Whether the time is."""
        return time.monotonic() > self._end


SECONDS: Final = 10.0
USUAL_MATCHES: Final = 50
MOST_MATCHES: Final = 200
CONTEXT: Final = 5
FILES: Final = 50_000
"""Files that are looked through at most."""

LARGE: Final = 2_000_000
"""Bytes of a file; larger ones are hardly ever source text."""

TOGETHER: Final = 32
"""Files that are read side by side."""

ROOM: Final = SHOWN - 1000


class Search:
    """One search through many files, and what came of it: at most `limit` matches, each with lines of `context`."""

    def __init__(self, files: Files, hunt: Hunt, context: int, limit: int) -> None:
        self._files = files
        self._hunt = hunt
        self._context = context
        self._limit = limit
        self._found: list[tuple[str, Match]] = []
        self._notes: list[str] = []
        self._unread = 0
        self._slow = ""

    async def run(self, paths: Sequence[str], walk: Walk) -> None:
        """Look through them until there is enough or the time is over."""
        if walk.cut:
            self._notes.append("not everything was looked at, there is too much in this folder: name one below it")
        elif not walk.whole:
            self._notes.append("there are more files than were looked through")
        for start in range(0, len(paths), TOGETHER):
            group = paths[start : start + TOGETHER]
            contents = await asyncio.gather(*(self._read(path) for path in group))
            try:
                await asyncio.to_thread(self._look, group, contents)
            except TooSlow as slow:
                self._slow = str(slow)
                return
            if len(self._found) >= self._limit:
                self._notes.append("there may be more: narrow it down, or give a limit")
                return

    def outcome(self) -> Outcome:
        """What is said. A search that has found nothing in its time has failed."""
        if self._slow and not self._found:
            return Outcome(state="failed", error=self._slow, result={"reason": "too_slow"})
        if self._unread:
            self._notes.append(f"{self._unread} files were passed over: no text, too large, or gone")
        if self._hunt.cut:
            self._notes.append("of very long lines only the beginning was looked at")
        if self._slow:
            self._notes.append("the search took too long and was ended: use a simpler pattern, a glob or a folder")
        rows, shown = _rows(self._found)
        if shown < len(self._found):
            self._notes.append(f"{len(self._found) - shown} more are not shown")
        notes = "".join(f"; {note}" for note in self._notes)
        head = f"{len(self._found)} matches in {len({path for path, _ in self._found})} files{notes}."
        return Outcome(result={"output": "\n".join((head, *rows)), "count": len(self._found)})

    async def _read(self, path: str) -> bytes | None:
        try:
            return await self._files.read(path, LARGE)
        except FileFault:
            return None

    def _look(self, paths: Sequence[str], contents: Sequence[bytes | None]) -> None:
        for path, content in zip(paths, contents, strict=True):
            if self._hunt.over:
                raise TooSlow(SLOW)
            left = self._limit - len(self._found)
            if left <= 0:
                return
            try:
                text = decoded(content, path).content if content is not None else None
            except Unreadable:
                text = None
            self._unread += text is None
            found = self._hunt.matches(text, self._context, left) if text is not None else []
            self._found += [(path, match) for match in found]


def _rows(found: Sequence[tuple[str, Match]]) -> tuple[list[str], int]:
    """The lines of as many matches as there is room for; a line that two of them show is shown once."""
    rows: dict[tuple[str, int], str] = {}
    hits = {(path, line) for path, (line, _) in found}
    room = ROOM
    for number, (path, (_, shown)) in enumerate(found):
        for line, text in shown:
            if (path, line) in rows:
                continue
            mark = ":" if (path, line) in hits else "-"
            row = rows[path, line] = f"{path}{mark}{line}{mark} {text}"
            room -= len(row.encode(errors="replace")) + 1
        if room < 0 and number:
            return list(rows.values()), number + 1
    return list(rows.values()), len(found)
