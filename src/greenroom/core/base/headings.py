"""Headings in text that goes into a prompt: those of the first two levels are the prompt's own.

A line ends wherever a reader may see one end, also at the characters that few think of.
"""

from __future__ import annotations

import re
from typing import Final

_MARKS: Final = r"(?:[\s>\u200b-\u200d\u2060\ufeff]|[-*+]\s|\d{1,9}[.)]\s)*"
"""What may stand before a heading: spaces, what nobody sees, and the signs of quotes and lists."""

_HIGH: Final = re.compile(rf"({_MARKS})#{{1,2}}(?!#)(?=\s|$)")
_LINE: Final = re.compile(rf"{_MARKS}(?:=+|-+)\s*")
_HEADING: Final = re.compile(rf"{_MARKS}#{{1,6}}(?:\s|$)")


def is_heading(line: str) -> bool:
    """Whether a line is a heading, of whichever level."""
    return _HEADING.match(line) is not None


def has_high(text: str) -> bool:
    """Whether there is a heading of the first or second level in it, be it marked or underlined."""
    lines = text.splitlines()
    marked = any(_HIGH.match(one) for one in lines)
    return marked or any(map(_underlines, lines, lines[1:]))


def underlines(above: str, text: str) -> bool:
    """Whether a text, put under another one, makes a heading of its last line."""
    return any(map(_underlines, above.splitlines()[-1:], text.splitlines()[:1]))


def lowered(text: str) -> str:
    """The text with no heading above the third level, and with one kind of line end."""
    found: list[str] = []
    for line in text.splitlines():
        if found and _underlines(found[-1], line):
            found[-1] = found[-1] if is_heading(found[-1]) else f"### {found[-1].lstrip()}"
            continue
        found.append(_HIGH.sub(r"\1###", line, count=1) if _HIGH.match(line) else line)
    return "\n".join(found).strip()


def _underlines(above: str, line: str) -> bool:
    """Whether a line of `=` or `-` makes a heading of the one above it, which holds more than blanks and tabs."""
    return bool(above.strip(" \t")) and _LINE.fullmatch(line) is not None
