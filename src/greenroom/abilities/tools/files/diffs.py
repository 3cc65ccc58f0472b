"""What a change did, as a unified diff that fits on a screen. It is made from the changes, not by comparing files:
that takes a time that nobody can tell beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from typing import Final

from greenroom.abilities.tools.files.edits import Span
from greenroom.core.base.records import record

CONTEXT: Final = 3
COMPARED: Final = 2000
"""Lines of one hunk that are compared; longer ones are shown as all gone and all new."""

SHOWN_LINES: Final = 120
SHOWN_LETTERS: Final = 200


@record
class Summary:
    """`text` is the diff, cut where it is too long; the numbers are of the whole."""

    text: str
    added: int
    removed: int


@record
class _Hunk:
    first: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def summed_up(text: str, spans: Sequence[Span]) -> Summary:
    """The diff of these changes of a flat text; they are in order and do not overlap."""
    return _rendered(_hunks(text, text.split("\n"), spans))


def _rendered(hunks: Iterable[_Hunk]) -> Summary:
    rows: list[str] = []
    added = removed = shift = 0
    for hunk in hunks:
        diff = _diff(hunk, shift)
        added += sum(row.startswith("+") for row in diff)
        removed += sum(row.startswith("-") for row in diff)
        shift += len(hunk.new) - len(hunk.old)
        rows += diff
    shown = [row if len(row) <= SHOWN_LETTERS else f"{row[:SHOWN_LETTERS]}…" for row in rows[:SHOWN_LINES]]
    if len(rows) > SHOWN_LINES:
        shown.append(f"… {len(rows) - SHOWN_LINES} more lines of the diff are not shown")
    return Summary(text="\n".join(shown), added=added, removed=removed)


def compared(old: str, new: str) -> Summary:
    """The diff of two whole flat texts: from the first line that differs to the last."""
    before, after = old.split("\n"), new.split("\n")
    if before[-1] == after[-1] == "":
        del before[-1], after[-1]
    short = min(len(before), len(after))
    head = next((place for place in range(short) if before[place] != after[place]), short)
    most = short - head
    tail = next((place for place in range(most) if before[-1 - place] != after[-1 - place]), most)
    low, beyond = max(0, head - CONTEXT), max(0, tail - CONTEXT)
    hunk = _Hunk(first=low, old=tuple(before[low : len(before) - beyond]), new=tuple(after[low : len(after) - beyond]))
    return _rendered([hunk])


def _hunks(text: str, lines: Sequence[str], spans: Sequence[Span]) -> Iterator[_Hunk]:
    """Changes that stand near each other are shown together, each with the lines around it."""
    group: list[Span] = []
    for span in spans:
        if group and text.count("\n", group[-1].end, span.start) > 2 * CONTEXT:
            yield _hunk(text, lines, group)
            group = []
        group.append(span)
    if group:
        yield _hunk(text, lines, group)


def _hunk(text: str, lines: Sequence[str], group: Sequence[Span]) -> _Hunk:
    first = text.count("\n", 0, group[0].start)
    last = text.count("\n", 0, group[-1].end)
    low, high = max(0, first - CONTEXT), min(len(lines), last + CONTEXT + 1)
    begin = text.rfind("\n", 0, group[0].start) + 1
    stop = text.find("\n", group[-1].end)
    stop = len(text) if stop < 0 else stop
    parts, at = [], begin
    for span in group:
        parts += [text[at : span.start], span.replace]
        at = span.end
    changed = "".join((*parts, text[at:stop])).split("\n")
    around = tuple(lines[low:first]), tuple(lines[last + 1 : high])
    return _Hunk(first=low, old=tuple(lines[low:high]), new=(*around[0], *changed, *around[1]))


def _diff(hunk: _Hunk, shift: int) -> list[str]:
    if max(len(hunk.old), len(hunk.new)) > COMPARED:
        ours = f"@@ -{hunk.first + 1},{len(hunk.old)} +{hunk.first + 1 + shift},{len(hunk.new)} @@"
        return [ours, *(f"-{line}" for line in hunk.old), *(f"+{line}" for line in hunk.new)]
    rows = list(unified_diff(hunk.old, hunk.new, lineterm="", n=CONTEXT))[2:]
    return [_numbered(row, hunk.first, shift) if row.startswith("@@ ") else row for row in rows]


def _numbered(head: str, first: int, shift: int) -> str:
    """The head of a hunk with the file's line numbers in the place of the stretch's."""
    old, new = head.split(" ")[1:3]
    return f"@@ -{_moved(old[1:], first)} +{_moved(new[1:], first + shift)} @@"


def _moved(place: str, by: int) -> str:
    line, comma, count = place.partition(",")
    return f"{int(line) + by}{comma}{count}"
