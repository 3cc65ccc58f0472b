"""The engine of changes: where a change belongs in a text, and the text with all of them done. It knows no files.

All changes of a call are looked for in the text as it was, so that line numbers mean what the model has read; they may
not overlap. Either all of them fit or nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final, Literal

from greenroom.abilities.tools.files.arguments import Arguments
from greenroom.abilities.tools.files.texts import Flat, flat
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import record

LINES: Final = 50_000
"""Lines of a file in which one looks; in a longer one, in the first ones."""

WANTED: Final = 200
"""Lines of what is looked for that are compared."""

CLOSE: Final = 3_000
"""Lines that are compared letter by letter, when no line is the same."""

REPEATED: Final = 5
"""How often the same line counts among those that are looked for."""

ALIKE: Final = 0.6
SHOWN: Final = 160


def nearest(lines: Sequence[str], wanted: Sequence[str], first: int = 1) -> str:
    """A sentence about the place most like `wanted`, whose lines are numbered from `first`; "" if none is."""
    looked, sought = _blank_free(lines[:LINES]), _blank_free(wanted[:WANTED])
    if not sought or not looked:
        return ""
    best = _by_lines(looked, sought)
    if best is None:
        best = _by_letters(looked, sought[0][1])
    if best is None:
        return ""
    return _difference(lines, looked, sought, best, first)


Numbered = list[tuple[int, str]]


def _blank_free(lines: Sequence[str]) -> Numbered:
    """The lines that have something in them, by their index, without the space around it."""
    return [(number, line.strip()) for number, line in enumerate(lines) if line.strip()]


def _by_lines(looked: Numbered, sought: Numbered) -> int | None:
    """Where the most lines are the same but for the space around them: votes for where the first one would stand."""
    wanted: dict[str, list[int]] = {}
    for offset, (_, line) in enumerate(sought):
        wanted.setdefault(line, []).append(offset)
    votes: dict[int, int] = {}
    for place, (_, line) in enumerate(looked):
        for offset in wanted.get(line, [])[:REPEATED]:
            weight = 1 if len(line) < 4 else 10  # a brace alone says little
            votes[place - offset] = votes.get(place - offset, 0) + weight
    if not votes:
        return None
    best = max(votes, key=lambda place: (votes[place], -place))
    return max(best, 0)


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

FIELDS: Final = ("search", "search_start", "search_end", "replace", "range")


class Misfit(ModelFault):
    """A change that does not fit. `reason` is for programs."""

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(why)
        self.reason: Reason = reason


@record
class Edit:
    """One change: of `search`, or of all from `start` to `end`, both included; `lines` is where to look."""

    replace: str
    search: str = ""
    start: str = ""
    end: str = ""
    lines: tuple[int, int] | None = None


@record
class Span:
    """A stretch of a flat text and what takes its place; `number` is that of its change, from 1."""

    start: int
    end: int
    replace: str
    number: int = 1


def read_edits(given: Arguments) -> list[Edit]:
    """The changes of one file, as the model has written them."""
    return [_read(one) for one in given.several("edits")]


def _read(given: Arguments) -> Edit:
    given.only(FIELDS)
    pair = [name for name in ("search_start", "search_end") if given.given.get(name) is not None]
    single = given.given.get("search") is not None
    if single == bool(pair):
        raise ModelFault(f"{given.where}: a change has 'search', or 'search_start' and 'search_end', with 'replace'.")
    replace = flat(given.text("replace", blank=True))
    lines = _lines(given)
    if single:
        return Edit(replace=replace, search=flat(given.text("search")), lines=lines)
    start, end = flat(given.text("search_start")), flat(given.text("search_end"))
    return Edit(replace=replace, start=start, end=end, lines=lines)


def _lines(given: Arguments) -> tuple[int, int] | None:
    found = given.given.get("range")
    if found is None:
        return None
    match found:
        case [int(first), int(last)] if 1 <= first <= last:
            return first, last
    raise ModelFault(f"{given.where}: 'range' is two line numbers such as [10, 50], not {found!r:.100}")


def fitted(text: Flat, edits: Sequence[Edit]) -> list[Span]:
    """Where all changes belong, in order; `Misfit` with a sentence for each that fits nowhere."""
    spans: list[Span] = []
    misfits: list[Misfit] = []
    for number, edit in enumerate(edits, 1):
        try:
            spans.append(_span(text, edit, number))
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
        parts += [text.original[at : text.original_at(span.start)], _with_endings(text, span)]
        at = text.original_at(span.end)
    return "".join((*parts, text.original[at:]))


def _with_endings(text: Flat, span: Span) -> str:
    return span.replace.replace("\n", text.ending_at(span.start)) if "\n" in span.replace else span.replace


def _span(text: Flat, edit: Edit, number: int) -> Span:
    low, high = _scope(text, edit)
    start, end, replace = _single(text, edit, low, high) if edit.search else _region(text, edit, low, high)
    if text.text[start:end] == replace:
        raise Misfit("no_change", "it changes nothing: what is there and what should be there are the same.")
    return Span(start=start, end=end, replace=replace, number=number)


def _scope(text: Flat, edit: Edit) -> tuple[int, int]:
    if edit.lines is None:
        return 0, len(text.text)
    first, last = edit.lines
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
    within = "" if edit.lines is None else f" in lines {edit.lines[0]}-{edit.lines[1]}"
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
    starts = list(_matches(text.text, edit.start, low, high))
    if not starts:
        why = "start missing: SEARCH_START does not occur." + _hint(text, edit.start, low, high)
        raise Misfit("start_missing", why)
    ends = list(_matches(text.text, edit.end, low, high))
    if not ends:
        why = "end missing: SEARCH_END does not occur." + _hint(text, edit.end, low, high)
        raise Misfit("end_missing", why)
    for name, found in (("SEARCH_START", starts), ("SEARCH_END", ends)):
        if len(found) > 1:
            why = f"marks not unique: {name} occurs {_where(text, found)}. Make it longer, or give RANGE."
            raise Misfit("marks_not_unique", why)
    start, end = starts[0], ends[0] + len(edit.end)
    if ends[0] < start or end < start + len(edit.start):
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
