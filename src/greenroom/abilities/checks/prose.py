"""The sentences of what a model says, and whether what stands in one is claimed, or only asked, planned or denied.

A model may say anything at any length, and may say the same for ever: no sentence is read further than a person would
write one, and each is looked through once, however many claims stand in it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from greenroom.core.base.records import record

LONGEST: Final = 100_000
"""Characters that are looked at, blocks of code among them."""

PROSE: Final = 20_000
"""Characters of them that are read: more than anybody says of a job. What announces a list counts with each line."""

SENTENCE: Final = 2000
"""Characters of a sentence that are read: nobody writes longer ones."""

ANNOUNCING: Final = 400
"""Characters of a line that announces a list. What is longer is prose that ends with a colon."""

OPEN: Final = re.compile(
    r"\b(?:not|no|never|without|none|cannot|can't|couldn't|didn't|don't|doesn't|isn't|should|would|could|if|when|once|"
    r"until|before|unless|to verify|make sure|ensure|need|needs|todo|plan|planned|will|might|may|please|you can|try|"
    r"instead of|rather than|(?:for|as an) example|example:|e\.g)(?!\w)|n't\b|\?|？|"
    r"(?:没有|未|不|如果|应该|需要|请|可以|将|会|计划|建议|例如|确保|以便|之前)",
    re.IGNORECASE,
)
QUOTED: Final = re.compile(r"`([^`\n]{1,200})`")
CLAUSE: Final = re.compile(r"[,，;；]|\b(?:so|which|because|but)\b")
ENDS: Final = re.compile(r"(?<=[.!?。！？;；])\s+|(?<=[。！？；])|\n")
FENCE: Final = re.compile(r"^\s*(?:```|~~~)")
LISTED: Final = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")


def sentences(text: str) -> Iterator[str]:
    """One after the other. What stands in a list belongs to the line that announces it."""
    above, left = "", PROSE
    for line in _prose(text[:LONGEST]):
        listed = bool(LISTED.match(line))
        for part in (one for one in ENDS.split(line) if one.strip()):
            said = (f"{above} {part}" if listed and above else part)[:SENTENCE]
            left -= len(said)
            if left < 0:
                return
            yield said
        if not listed:
            above = line.strip() if line.rstrip().endswith((":", "：")) and len(line) <= ANNOUNCING else ""


def _prose(text: str) -> Iterator[str]:
    """The lines without blocks of code."""
    fenced = False
    for line in text.splitlines():
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and line.strip():
            yield line


def unquoted(said: str) -> str:
    """A sentence with blanks where something is quoted: what else stands in it stays where it is."""
    return QUOTED.sub(lambda match: " " * len(match[0]), said)


def is_open_before(said: str, start: int) -> bool:
    """Whether something that stands before it leaves it open."""
    ends = _openings(said).ends
    return bool(ends) and ends[0] <= start


def is_open(said: str, start: int, end: int) -> bool:
    """Whether what stands there is denied, planned or the like: by anything before it, or in its own clause."""
    found = _openings(said)
    if is_open_before(said, start):
        return True
    after, clause = bisect_left(found.starts, end), bisect_left(found.clauses, end)
    return after < len(found.ends) and (clause == len(found.clauses) or found.ends[after] <= found.clauses[clause])


@record
class _Openings:
    """Where the words are that leave something open, and where `clauses` end."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    clauses: tuple[int, ...]


@lru_cache(maxsize=8)  # it is asked for each claim of the sentence that is read
def _openings(said: str) -> _Openings:
    found = [one.span() for one in OPEN.finditer(unquoted(said))]
    return _Openings(
        starts=tuple(start for start, _ in found),
        ends=tuple(end for _, end in found),
        clauses=tuple(one.start() for one in CLAUSE.finditer(said)),
    )
