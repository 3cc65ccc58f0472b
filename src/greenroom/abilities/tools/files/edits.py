"""The engine of changes: where a change belongs in a text, the text with all of them done, and the diff. It knows no
files.

All changes of a call are looked for in the text as it was, so that line numbers mean what the model has read; they may
not overlap. Either all of them fit or nothing is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, unified_diff
from functools import partial
from itertools import pairwise
from typing import Annotated, Final, Literal

from msgspec import Meta

from greenroom.abilities.tools.files.text import Flat, flat
from greenroom.abilities.tools.tool import Arguments
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import evolve, record

LINES: Final = 50_000
"""Lines of a file in which one looks; in a longer one, in the first ones."""

WANTED: Final = 200
"""Lines of what is looked for that are compared."""

CLOSE: Final = 3_000
"""Lines that are compared letter by letter, when no line is the same."""

TELLING: Final = 4
"""Letters of a line that says something: a brace alone does not."""

ALIKE: Final = 0.6
SHOWN: Final = 160


def nearest(lines: Sequence[str], wanted: Sequence[str], first: int = 1) -> str:
    """A sentence about the place most like `wanted`, whose lines are numbered from `first`; "" if none is."""
    looked, sought = _blank_free(lines[:LINES]), _blank_free(wanted[:WANTED])
    if not sought or not looked:
        return ""
    same = SequenceMatcher(None, [line for _, line in looked], [line for _, line in sought], autojunk=False)
    found = same.find_longest_match()
    lines_alike = any(len(line) >= TELLING for _, line in looked[found.a : found.a + found.size])
    best = max(found.a - found.b, 0) if lines_alike else _by_letters(looked, sought[0][1])
    return "" if best is None else _difference(lines, looked, sought, best, first)


Numbered = list[tuple[int, str]]


def _blank_free(lines: Sequence[str]) -> Numbered:
    """The lines that have something in them, by their index, without the space around it."""
    return [(number, line.strip()) for number, line in enumerate(lines) if line.strip()]


def _by_letters(looked: Numbered, line: str) -> int | None:
    """The line most like the first one, if any is."""
    matcher = SequenceMatcher(b=line[:SHOWN], autojunk=False)
    best, found = ALIKE, None
    for place, (_, other) in enumerate(looked[:CLOSE]):
        matcher.set_seq1(other[:SHOWN])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, found = ratio, place
    return found


def _difference(lines: Sequence[str], looked: Numbered, sought: Numbered, best: int, first: int) -> str:
    last = min(best + len(sought), len(looked)) - 1
    where = f"The nearest is at lines {first + looked[best][0]}-{first + looked[last][0]}"
    for offset, (_, line) in enumerate(sought):
        place = best + offset
        if place >= len(looked):
            return f"{where}, where the file ends before {line[:SHOWN]!r}."
        if looked[place][1] != line:
            number = first + looked[place][0]
            return f"{where}; line {number} differs: the file has {looked[place][1][:SHOWN]!r}, not {line[:SHOWN]!r}."
    number = first + looked[best][0]
    begin = lines[looked[best][0]]
    return f"{where}; only spaces, tabs or blank lines differ: line {number} is {begin[:SHOWN]!r}."


Reason = Literal[
    "not_found",
    "multiple_matches",
    "start_missing",
    "end_missing",
    "end_before_start",
    "marks_not_unique",
    "range_outside",
    "overlap",
    "no_change",
]
NAMED: Final = 10
"""Lines of matches that are named at most."""

COUNTED: Final = 1000
"""Matches that are counted at most."""


class Misfit(ModelFault):
    """A change that does not fit. `reason` is for programs."""

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(why)
        self.reason: Reason = reason


class Edit(Arguments, frozen=True, kw_only=True):
    """One change: of `search`, or of all from `search_start` to `search_end`, both included."""

    search: Annotated[str, Meta(description="Text copied from the file; it must occur exactly once.")] = ""
    search_start: Annotated[str, Meta(description="Instead of search: how a long stretch begins.")] = ""
    search_end: Annotated[str, Meta(description="How that stretch ends. Both marks are replaced too.")] = ""
    replace: Annotated[str, Meta(description="What takes its place; empty deletes.")]
    range: (
        Annotated[
            list[Annotated[int, Meta(ge=1)]],
            Meta(min_length=2, max_length=2, description="First and last line in which to look."),
        ]
        | None
    ) = None

    def __post_init__(self) -> None:
        given = tuple(bool(text.strip()) for text in (self.search, self.search_start, self.search_end))
        if given not in ((True, False, False), (False, True, True)):
            raise ValueError("a change has 'search', or 'search_start' and 'search_end', with 'replace'")
        if self.range is not None and self.range[0] > self.range[1]:
            raise ValueError("'range' is two line numbers such as [10, 50]")

    @property
    def flat(self) -> Edit:
        """The same with plain line ends, as it is looked for."""
        texts = {name: flat(getattr(self, name)) for name in ("search", "search_start", "search_end", "replace")}
        return evolve(self, **texts)


@record
class Span:
    """A stretch of a flat text and what takes its place; `number` is that of its change, from 1."""

    start: int
    end: int
    replace: str
    number: int = 1


def fitted(text: Flat, edits: Sequence[Edit]) -> list[Span]:
    """Where all changes belong, in order; `Misfit` with a sentence for each that fits nowhere."""
    spans: list[Span] = []
    misfits: list[Misfit] = []
    for number, edit in enumerate(edits, 1):
        try:
            spans.append(_span(text, edit.flat, number))
        except Misfit as misfit:
            said = f"Change {number}: {misfit}" if len(edits) > 1 else str(misfit)
            misfits.append(Misfit(misfit.reason, said))
    if misfits:
        raise Misfit(misfits[0].reason, "\n".join(map(str, misfits)))
    spans.sort(key=lambda one: (one.start, one.end))
    for before, after in pairwise(spans):
        if after.start < before.end or after.start == before.start:
            why = f"Changes {before.number} and {after.number} overlap. All are looked for in the file as it is now."
            raise Misfit("overlap", why)
    return spans


def done(text: Flat, spans: Sequence[Span]) -> str:
    """The original with all changes made; what is not changed keeps its line ends."""
    parts: list[str] = []
    at = 0
    for span in spans:
        replace = span.replace.replace("\n", text.ending_at(span.start)) if "\n" in span.replace else span.replace
        parts += [text.original[at : text.original_at(span.start)], replace]
        at = text.original_at(span.end)
    return "".join((*parts, text.original[at:]))


def _span(text: Flat, edit: Edit, number: int) -> Span:
    low, high = _scope(text, edit)
    start, end, replace = _single(text, edit, low, high) if edit.search else _region(text, edit, low, high)
    if text.text[start:end] == replace:
        raise Misfit("no_change", "it changes nothing: what is there and what should be there are the same.")
    return Span(start=start, end=end, replace=replace, number=number)


def _scope(text: Flat, edit: Edit) -> tuple[int, int]:
    if edit.range is None:
        return 0, len(text.text)
    first, last = edit.range
    total = text.lines
    if last > total:
        raise Misfit("range_outside", f"RANGE {first}-{last} is outside the file, which has {total} lines.")
    return text.line_start(first), text.line_start(last + 1)


def _single(text: Flat, edit: Edit, low: int, high: int) -> tuple[int, int, str]:
    found = list(_matches(text.text, edit.search, low, high))
    if len(found) > 1:
        where = _where(text, found)
        why = f"multiple matches: SEARCH occurs {where}. Add a neighbouring line so that it occurs once, or give RANGE."
        raise Misfit("multiple_matches", why)
    if found:
        return found[0], found[0] + len(edit.search), edit.replace
    if last := _last_line(text.text, edit, low, high):
        return last
    within = "" if edit.range is None else f" in lines {edit.range[0]}-{edit.range[1]}"
    why = f"not found: SEARCH does not occur{within}. It has to be copied character by character."
    raise Misfit("not_found", why + _hint(text, edit.search, low, high))


def _last_line(text: str, edit: Edit, low: int, high: int) -> tuple[int, int, str] | None:
    """The file's last line has no end, but SEARCH has one: then it is meant without, and stays so."""
    bare = edit.search.removesuffix("\n")
    start = high - len(bare)
    if bare == edit.search or high != len(text) or start < low or not text.endswith(bare):
        return None
    return start, high, edit.replace.removesuffix("\n")


def _region(text: Flat, edit: Edit, low: int, high: int) -> tuple[int, int, str]:
    starts = list(_matches(text.text, edit.search_start, low, high))
    if not starts:
        why = "start missing: SEARCH_START does not occur." + _hint(text, edit.search_start, low, high)
        raise Misfit("start_missing", why)
    ends = list(_matches(text.text, edit.search_end, low, high))
    if not ends:
        why = "end missing: SEARCH_END does not occur." + _hint(text, edit.search_end, low, high)
        raise Misfit("end_missing", why)
    for name, found in (("SEARCH_START", starts), ("SEARCH_END", ends)):
        if len(found) > 1:
            why = f"marks not unique: {name} occurs {_where(text, found)}. Make it longer, or give RANGE."
            raise Misfit("marks_not_unique", why)
    start, end = starts[0], ends[0] + len(edit.search_end)
    if ends[0] < start or end < start + len(edit.search_start):
        lines = f"SEARCH_END is at line {text.line_of(ends[0])}, SEARCH_START at line {text.line_of(start)}"
        raise Misfit("end_before_start", f"end before start: {lines}.")
    return start, end, edit.replace


def _matches(text: str, wanted: str, low: int, high: int) -> Iterator[int]:
    """All places, also those that overlap: of two that do, nobody knows which one is meant."""
    at = text.find(wanted, low, high)
    for _ in range(COUNTED):
        if at < 0:
            return
        yield at
        at = text.find(wanted, at + 1, high)


def _where(text: Flat, found: Sequence[int]) -> str:
    lines = ", ".join(str(text.line_of(one)) for one in found[:NAMED])
    more = ", …" if len(found) > NAMED else ""
    often = f"{len(found)} times" if len(found) < COUNTED else f"{COUNTED} times or more"
    return f"{often}, at lines {lines}{more}"


def _hint(text: Flat, wanted: str, low: int, high: int) -> str:
    found = nearest(text.text[low:high].split("\n"), wanted.split("\n"), text.line_of(low))
    return f" {found}" if found else ""


CONTEXT: Final = 3
COMPARED: Final = 10_000
"""Lines that are compared; more are shown as all gone and all new."""

SHOWN_LINES: Final = 120
SHOWN_LETTERS: Final = 200


@record
class Summary:
    """`text` is the diff, cut where it is too long; the numbers are of the whole."""

    text: str
    added: int
    removed: int


def compared(old: str, new: str) -> Summary:
    """The diff of two flat texts: from the first line that differs to the last."""
    before, after = old.split("\n"), new.split("\n")
    if before[-1] == after[-1] == "":
        del before[-1], after[-1]
    short = min(len(before), len(after))
    head = next((place for place in range(short) if before[place] != after[place]), short)
    most = short - head
    tail = next((place for place in range(most) if before[-1 - place] != after[-1 - place]), most)
    low, beyond = max(0, head - CONTEXT), max(0, tail - CONTEXT)
    gone, come = before[low : len(before) - beyond], after[low : len(after) - beyond]
    if max(len(gone), len(come)) > COMPARED:
        numbers = f"@@ -{low + 1},{len(gone)} +{low + 1},{len(come)} @@"
        rows = [numbers, *(f"-{line}" for line in gone), *(f"+{line}" for line in come)]
    else:
        rows = list(unified_diff(gone, come, lineterm="", n=CONTEXT))[2:]
        # The head of a hunk gets the file's line numbers in the place of the stretch's.
        moved = partial(re.sub, r"([-+])(\d+)", lambda found: f"{found[1]}{int(found[2]) + low}")
        rows = [moved(row) if row.startswith("@@ ") else row for row in rows]
    shown = [row if len(row) <= SHOWN_LETTERS else f"{row[:SHOWN_LETTERS]}…" for row in rows[:SHOWN_LINES]]
    if len(rows) > SHOWN_LINES:
        shown.append(f"… {len(rows) - SHOWN_LINES} more lines of the diff are not shown")
    return Summary(
        text="\n".join(shown),
        added=sum(row.startswith("+") for row in rows),
        removed=sum(row.startswith("-") for row in rows),
    )
