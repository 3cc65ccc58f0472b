"""When a text is not found: what comes nearest to it, and the first line in which the two differ."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

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
