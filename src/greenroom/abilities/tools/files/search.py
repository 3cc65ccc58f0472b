"""Search many files for a text or a regular expression, within a time limit.

Python's `re` cannot be interrupted, blocks all threads, and takes exponential time on patterns such as `(a+)+b`. The
`regex` package has the same syntax and a timeout, and releases the lock. RE2 is always fast, but lacks the look-ahead
and back-references that models use.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import regex

from greenroom.abilities.tools.files.text import NotTextError, decode_text
from greenroom.core.base.errors import ModelFault
from greenroom.core.ports.executor import Outcome
from greenroom.core.ports.files import FileFault, Files, WalkResult
from greenroom.core.ports.tool import MAX_RESULT_BYTES

MAX_PATTERNS: Final = 64
"""Maximum number of patterns that braces may expand to."""

BRACES: Final = re.compile(r"\{([^{}]*)\}")


def expand_braces(glob: str) -> list[str]:
    """Return one pattern for each choice in the braces. An empty glob has no patterns."""
    found, waiting = [], [glob.strip()] if glob.strip() else []
    while waiting:
        pattern = waiting.pop()
        braces = BRACES.search(pattern)
        if braces is None:
            found.append(pattern)
            continue
        waiting += [pattern[: braces.start()] + choice + pattern[braces.end() :] for choice in braces[1].split(",")]
        if len(waiting) + len(found) > MAX_PATTERNS:
            raise ModelFault(
                f"The pattern {glob[:100]!r} stands for more than {MAX_PATTERNS} patterns. Use a simpler one."
            )
    return sorted(found)


MAX_PATTERN_CHARS: Final = 1000
"""Maximum characters of a pattern."""

MAX_SEARCHED_CHARS: Final = 10_000
"""Maximum characters of a line that are searched."""

MAX_SHOWN_CHARS: Final = 300
"""Maximum characters of a line that are shown."""


TOO_SLOW_MESSAGE: Final = "The search took too long. Use a simpler pattern, a glob or a folder."


class TooSlow(ModelFault):
    """The time limit is reached."""


LineMatch: TypeAlias = tuple[int, tuple[tuple[int, str], ...]]
"""The number of the matching line, and the lines around it as numbers and texts."""


class PatternSearch:
    """A compiled pattern with a deadline."""

    def __init__(self, pattern: str, *, literal: bool, ignore_case: bool, seconds: float) -> None:
        if len(pattern) > MAX_PATTERN_CHARS:
            raise ModelFault(f"The pattern has {len(pattern)} characters; {MAX_PATTERN_CHARS} are allowed.")
        flags = regex.IGNORECASE if ignore_case else 0
        try:
            self._pattern = regex.compile(regex.escape(pattern) if literal else pattern, flags)
        except (regex.error, RecursionError, OverflowError) as error:
            why = f"{pattern!r} is not a regular expression: {error}. Set literal to true to look for it as it is."
            raise ModelFault(why) from error
        self._plain = pattern if literal and not ignore_case else None
        self._end = time.monotonic() + seconds
        self.has_cut_lines = False

    def find_matches(self, text: str, context: int, limit: int) -> list[LineMatch]:
        """Return up to `limit` matching lines. Raise `TooSlow` at the deadline."""
        lines = text.split("\n")
        found: list[LineMatch] = []
        for number in self._find_lines(lines):
            low, high = max(0, number - context), min(len(lines), number + context + 1)
            around = enumerate((line.removesuffix("\r") for line in lines[low:high]), low + 1)
            shown = tuple(
                (place, line if len(line) <= MAX_SHOWN_CHARS else f"{line[:MAX_SHOWN_CHARS]}…")
                for place, line in around
            )
            found.append((number + 1, shown))
            if len(found) == limit:
                break
        return found

    def _find_lines(self, lines: Sequence[str]) -> Iterator[int]:
        for number, line in enumerate(lines):
            self.has_cut_lines = self.has_cut_lines or len(line) > MAX_SEARCHED_CHARS
            if self._plain in line if self._plain is not None else self._has_match(line[:MAX_SEARCHED_CHARS]):
                yield number

    def _has_match(self, line: str) -> bool:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TooSlow(TOO_SLOW_MESSAGE)
        try:
            return self._pattern.search(line, timeout=left, concurrent=True) is not None
        except TimeoutError:
            raise TooSlow(TOO_SLOW_MESSAGE) from None

    @property
    def is_out_of_time(self) -> bool:
        """Return whether the deadline has passed."""
        return time.monotonic() > self._end


SEARCH_TIMEOUT_S: Final = 10.0
DEFAULT_MATCHES: Final = 50
MAX_MATCHES: Final = 200
MAX_CONTEXT_LINES: Final = 5
MAX_SEARCHED_FILES: Final = 50_000
"""Maximum number of files that are searched."""

MAX_SEARCHED_FILE_BYTES: Final = 2_000_000
"""Maximum bytes of a searched file. Larger files are rarely source text."""

PARALLEL_READS: Final = 32
"""Number of files that are read in parallel."""

MAX_OUTPUT_BYTES: Final = MAX_RESULT_BYTES - 1000


class FileSearch:
    """One search through many files and its results: at most `limit` matches, each with `context` lines around it."""

    def __init__(self, files: Files, pattern_search: PatternSearch, context: int, limit: int) -> None:
        self._files = files
        self._pattern_search = pattern_search
        self._context = context
        self._limit = limit
        self._matches: list[tuple[str, LineMatch]] = []
        self._notes: list[str] = []
        self._unread_files = 0
        self._timeout_message = ""

    async def run(self, paths: Sequence[str], walk: WalkResult) -> None:
        """Search the files until the limit or the deadline is reached."""
        if walk.cut:
            self._notes.append("not everything was looked at, there is too much in this folder: name one below it")
        elif not walk.whole:
            self._notes.append("there are more files than were looked through")
        for start in range(0, len(paths), PARALLEL_READS):
            group = paths[start : start + PARALLEL_READS]
            contents = await asyncio.gather(*(self._read(path) for path in group))
            try:
                await asyncio.to_thread(self._search_contents, group, contents)
            except TooSlow as slow:
                self._timeout_message = str(slow)
                return
            if len(self._matches) >= self._limit:
                self._notes.append("there may be more: narrow it down, or give a limit")
                return

    def build_outcome(self) -> Outcome:
        """Build the outcome. A search that timed out without a match has failed."""
        if self._timeout_message and not self._matches:
            return Outcome(state="failed", error=self._timeout_message, result={"reason": "too_slow"})
        if self._unread_files:
            self._notes.append(f"{self._unread_files} files were passed over: no text, too large, or gone")
        if self._pattern_search.has_cut_lines:
            self._notes.append("of very long lines only the beginning was looked at")
        if self._timeout_message:
            self._notes.append("the search took too long and was ended: use a simpler pattern, a glob or a folder")
        rows, shown = _render_rows(self._matches)
        if shown < len(self._matches):
            self._notes.append(f"{len(self._matches) - shown} more are not shown")
        notes = "".join(f"; {note}" for note in self._notes)
        head = f"{len(self._matches)} matches in {len({path for path, _ in self._matches})} files{notes}."
        return Outcome(result={"output": "\n".join((head, *rows)), "count": len(self._matches)})

    async def _read(self, path: str) -> bytes | None:
        try:
            return await self._files.read(path, MAX_SEARCHED_FILE_BYTES)
        except FileFault:
            return None

    def _search_contents(self, paths: Sequence[str], contents: Sequence[bytes | None]) -> None:
        for path, content in zip(paths, contents, strict=True):
            if self._pattern_search.is_out_of_time:
                raise TooSlow(TOO_SLOW_MESSAGE)
            left = self._limit - len(self._matches)
            if left <= 0:
                return
            try:
                text = decode_text(content, path).content if content is not None else None
            except NotTextError:
                text = None
            self._unread_files += text is None
            found = self._pattern_search.find_matches(text, self._context, left) if text is not None else []
            self._matches += [(path, match) for match in found]


def _render_rows(found: Sequence[tuple[str, LineMatch]]) -> tuple[list[str], int]:
    """Render as many matches as fit. Lines that two matches share appear once."""
    rows: dict[tuple[str, int], str] = {}
    hits = {(path, line) for path, (line, _) in found}
    room = MAX_OUTPUT_BYTES
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
