"""Locate changes in a text, apply them, and render the diff. This module does not touch files.

All changes of a call are located in the original text, so that line numbers match what the model has read. They may not
overlap. Either all changes fit, or nothing is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, unified_diff
from functools import partial
from itertools import pairwise
from typing import Annotated, Final, Literal

from msgspec import Meta

from greenroom.abilities.tools.files.text import NormalizedText, normalize_line_ends
from greenroom.abilities.tools.tool import Arguments
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import evolve, record

MAX_SEARCHED_LINES: Final = 50_000
"""Maximum lines of a file that are searched for a similar place, from the first line."""

MAX_WANTED_LINES: Final = 200
"""Maximum lines of the wanted text that are compared."""

MAX_FUZZY_LINES: Final = 3_000
"""Maximum lines that are compared by character when no line is equal."""

MIN_TELLING_CHARS: Final = 4
"""Minimum characters of a distinctive line. A single brace is not distinctive."""

MIN_SIMILARITY: Final = 0.6
MAX_SHOWN_CHARS: Final = 160


def describe_nearest(lines: Sequence[str], wanted: Sequence[str], first: int = 1) -> str:
    """Describe the place most similar to `wanted`, with lines numbered from `first`. Return "" if there is none."""
    looked, sought = _drop_blank_lines(lines[:MAX_SEARCHED_LINES]), _drop_blank_lines(wanted[:MAX_WANTED_LINES])
    if not sought or not looked:
        return ""
    same = SequenceMatcher(None, [line for _, line in looked], [line for _, line in sought], autojunk=False)
    found = same.find_longest_match()
    lines_alike = any(len(line) >= MIN_TELLING_CHARS for _, line in looked[found.a : found.a + found.size])
    best = max(found.a - found.b, 0) if lines_alike else _find_similar_line(looked, sought[0][1])
    return "" if best is None else _describe_difference(lines, looked, sought, best, first)


NumberedLines = list[tuple[int, str]]


def _drop_blank_lines(lines: Sequence[str]) -> NumberedLines:
    """Return the stripped lines that are not blank, with their indexes."""
    return [(number, line.strip()) for number, line in enumerate(lines) if line.strip()]


def _find_similar_line(looked: NumberedLines, line: str) -> int | None:
    """Return the position of the most similar line, or None."""
    matcher = SequenceMatcher(b=line[:MAX_SHOWN_CHARS], autojunk=False)
    best, found = MIN_SIMILARITY, None
    for place, (_, other) in enumerate(looked[:MAX_FUZZY_LINES]):
        matcher.set_seq1(other[:MAX_SHOWN_CHARS])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, found = ratio, place
    return found


def _describe_difference(
    lines: Sequence[str], looked: NumberedLines, sought: NumberedLines, best: int, first: int
) -> str:
    last = min(best + len(sought), len(looked)) - 1
    where = f"The nearest is at lines {first + looked[best][0]}-{first + looked[last][0]}"
    for offset, (_, line) in enumerate(sought):
        place = best + offset
        if place >= len(looked):
            return f"{where}, where the file ends before {line[:MAX_SHOWN_CHARS]!r}."
        if looked[place][1] != line:
            number = first + looked[place][0]
            return (
                f"{where}; line {number} differs: the file has {looked[place][1][:MAX_SHOWN_CHARS]!r}, "
                f"not {line[:MAX_SHOWN_CHARS]!r}."
            )
    number = first + looked[best][0]
    begin = lines[looked[best][0]]
    return f"{where}; only spaces, tabs or blank lines differ: line {number} is {begin[:MAX_SHOWN_CHARS]!r}."


MismatchReason = Literal[
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
MAX_LINES_NAMED: Final = 10
"""Maximum number of matching lines that are named."""

MAX_MATCHES_COUNTED: Final = 1000
"""Maximum number of matches that are counted."""


class EditMismatch(ModelFault):
    """A change does not fit the text. `reason` is for programs."""

    def __init__(self, reason: MismatchReason, why: str) -> None:
        super().__init__(why)
        self.reason: MismatchReason = reason


class Edit(Arguments, frozen=True, kw_only=True):
    """One change: of `search`, or of everything from `search_start` to `search_end`, both included."""

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
    def with_plain_line_ends(self) -> Edit:
        """Return the same change with plain line endings."""
        texts = {
            name: normalize_line_ends(getattr(self, name))
            for name in ("search", "search_start", "search_end", "replace")
        }
        return evolve(self, **texts)


@record
class Span:
    """A range of a normalized text and its replacement. `number` is the number of its change, from 1."""

    start: int
    end: int
    replace: str
    number: int = 1


def locate_edits(text: NormalizedText, edits: Sequence[Edit]) -> list[Span]:
    """Locate all changes, in text order. Raise `EditMismatch` with a sentence for each change that does not fit."""
    spans: list[Span] = []
    misfits: list[EditMismatch] = []
    for number, edit in enumerate(edits, 1):
        try:
            spans.append(_locate_edit(text, edit.with_plain_line_ends, number))
        except EditMismatch as misfit:
            said = f"Change {number}: {misfit}" if len(edits) > 1 else str(misfit)
            misfits.append(EditMismatch(misfit.reason, said))
    if misfits:
        raise EditMismatch(misfits[0].reason, "\n".join(map(str, misfits)))
    spans.sort(key=lambda span: (span.start, span.end))
    for before, after in pairwise(spans):
        if after.start < before.end or after.start == before.start:
            why = f"Changes {before.number} and {after.number} overlap. All are looked for in the file as it is now."
            raise EditMismatch("overlap", why)
    return spans


def apply_spans(text: NormalizedText, spans: Sequence[Span]) -> str:
    """Apply the changes to the original. Unchanged text keeps its line endings."""
    parts: list[str] = []
    at = 0
    for span in spans:
        replace = span.replace.replace("\n", text.find_line_end(span.start)) if "\n" in span.replace else span.replace
        parts += [text.original[at : text.to_original(span.start)], replace]
        at = text.to_original(span.end)
    return "".join((*parts, text.original[at:]))


def _locate_edit(text: NormalizedText, edit: Edit, number: int) -> Span:
    low, high = _find_scope(text, edit)
    start, end, replace = _find_single(text, edit, low, high) if edit.search else _find_region(text, edit, low, high)
    if text.text[start:end] == replace:
        raise EditMismatch("no_change", "it changes nothing: what is there and what should be there are the same.")
    return Span(start=start, end=end, replace=replace, number=number)


def _find_scope(text: NormalizedText, edit: Edit) -> tuple[int, int]:
    if edit.range is None:
        return 0, len(text.text)
    first, last = edit.range
    total = text.lines
    if last > total:
        raise EditMismatch("range_outside", f"RANGE {first}-{last} is outside the file, which has {total} lines.")
    return text.find_line_start(first), text.find_line_start(last + 1)


def _find_single(text: NormalizedText, edit: Edit, low: int, high: int) -> tuple[int, int, str]:
    found = list(_find_matches(text.text, edit.search, low, high))
    if len(found) > 1:
        where = _describe_matches(text, found)
        why = f"multiple matches: SEARCH occurs {where}. Add a neighbouring line so that it occurs once, or give RANGE."
        raise EditMismatch("multiple_matches", why)
    if found:
        return found[0], found[0] + len(edit.search), edit.replace
    if last := _match_last_line(text.text, edit, low, high):
        return last
    within = "" if edit.range is None else f" in lines {edit.range[0]}-{edit.range[1]}"
    why = f"not found: SEARCH does not occur{within}. It has to be copied character by character."
    raise EditMismatch("not_found", why + _render_hint(text, edit.search, low, high))


def _match_last_line(text: str, edit: Edit, low: int, high: int) -> tuple[int, int, str] | None:
    """Match a SEARCH that ends with a line break against a last line without one. The replacement has none either."""
    bare = edit.search.removesuffix("\n")
    start = high - len(bare)
    if bare == edit.search or high != len(text) or start < low or not text.endswith(bare):
        return None
    return start, high, edit.replace.removesuffix("\n")


def _find_region(text: NormalizedText, edit: Edit, low: int, high: int) -> tuple[int, int, str]:
    starts = list(_find_matches(text.text, edit.search_start, low, high))
    if not starts:
        why = "start missing: SEARCH_START does not occur." + _render_hint(text, edit.search_start, low, high)
        raise EditMismatch("start_missing", why)
    ends = list(_find_matches(text.text, edit.search_end, low, high))
    if not ends:
        why = "end missing: SEARCH_END does not occur." + _render_hint(text, edit.search_end, low, high)
        raise EditMismatch("end_missing", why)
    for name, found in (("SEARCH_START", starts), ("SEARCH_END", ends)):
        if len(found) > 1:
            why = f"marks not unique: {name} occurs {_describe_matches(text, found)}. Make it longer, or give RANGE."
            raise EditMismatch("marks_not_unique", why)
    start, end = starts[0], ends[0] + len(edit.search_end)
    if ends[0] < start or end < start + len(edit.search_start):
        lines = f"SEARCH_END is at line {text.find_line(ends[0])}, SEARCH_START at line {text.find_line(start)}"
        raise EditMismatch("end_before_start", f"end before start: {lines}.")
    return start, end, edit.replace


def _find_matches(text: str, wanted: str, low: int, high: int) -> Iterator[int]:
    """Yield all matches, including overlapping ones: these are ambiguous."""
    at = text.find(wanted, low, high)
    for _ in range(MAX_MATCHES_COUNTED):
        if at < 0:
            return
        yield at
        at = text.find(wanted, at + 1, high)


def _describe_matches(text: NormalizedText, found: Sequence[int]) -> str:
    lines = ", ".join(str(text.find_line(place)) for place in found[:MAX_LINES_NAMED])
    more = ", …" if len(found) > MAX_LINES_NAMED else ""
    often = f"{len(found)} times" if len(found) < MAX_MATCHES_COUNTED else f"{MAX_MATCHES_COUNTED} times or more"
    return f"{often}, at lines {lines}{more}"


def _render_hint(text: NormalizedText, wanted: str, low: int, high: int) -> str:
    found = describe_nearest(text.text[low:high].split("\n"), wanted.split("\n"), text.find_line(low))
    return f" {found}" if found else ""


CONTEXT_LINES: Final = 3
MAX_COMPARED_LINES: Final = 10_000
"""Maximum lines that are compared. Larger texts are shown as completely replaced."""

MAX_DIFF_LINES: Final = 120
MAX_DIFF_LINE_CHARS: Final = 200


@record
class DiffSummary:
    """A diff. `text` is cut if it is too long; the numbers count the whole diff."""

    text: str
    added: int
    removed: int


def summarize_diff(old: str, new: str) -> DiffSummary:
    """Return the diff of two normalized texts, from the first differing line to the last."""
    before, after = old.split("\n"), new.split("\n")
    if before[-1] == after[-1] == "":
        del before[-1], after[-1]
    short = min(len(before), len(after))
    head = next((place for place in range(short) if before[place] != after[place]), short)
    most = short - head
    tail = next((place for place in range(most) if before[-1 - place] != after[-1 - place]), most)
    low, beyond = max(0, head - CONTEXT_LINES), max(0, tail - CONTEXT_LINES)
    gone, come = before[low : len(before) - beyond], after[low : len(after) - beyond]
    if max(len(gone), len(come)) > MAX_COMPARED_LINES:
        numbers = f"@@ -{low + 1},{len(gone)} +{low + 1},{len(come)} @@"
        rows = [numbers, *(f"-{line}" for line in gone), *(f"+{line}" for line in come)]
    else:
        rows = list(unified_diff(gone, come, lineterm="", n=CONTEXT_LINES))[2:]
        # The hunk header gets the line numbers of the file instead of those of the range.
        moved = partial(re.sub, r"([-+])(\d+)", lambda found: f"{found[1]}{int(found[2]) + low}")
        rows = [moved(row) if row.startswith("@@ ") else row for row in rows]
    shown = [
        row if len(row) <= MAX_DIFF_LINE_CHARS else f"{row[:MAX_DIFF_LINE_CHARS]}…" for row in rows[:MAX_DIFF_LINES]
    ]
    if len(rows) > MAX_DIFF_LINES:
        shown.append(f"… {len(rows) - MAX_DIFF_LINES} more lines of the diff are not shown")
    return DiffSummary(
        text="\n".join(shown),
        added=sum(row.startswith("+") for row in rows),
        removed=sum(row.startswith("-") for row in rows),
    )
