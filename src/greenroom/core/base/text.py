"""Texts of others in a text of ours: in a fence, with lower headings, with labels, and without what nobody sees."""

from __future__ import annotations

import re
from typing import Final, Self

_TICKS: Final = re.compile(r"`{3,}")


def fence(text: str) -> str:
    """Backticks, more than the text has anywhere in a row."""
    longest = max((len(found) for found in _TICKS.findall(text)), default=2)
    return "`" * (longest + 1)


def fenced(text: str) -> str:
    """The text in its fence."""
    marks = fence(text)
    return f"{marks}\n{text.rstrip(chr(10))}\n{marks}"


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


class Labelled(str):
    """With the labels (`core/state/origin.py`) of what strangers have written of it."""

    __slots__ = ("origins",)
    origins: tuple[str, ...]

    def __new__(cls, text: str, origins: tuple[str, ...] = ()) -> Self:
        """The text, from there."""
        made = super().__new__(cls, text)
        made.origins = origins
        return made


def origins_of(text: str) -> tuple[str, ...]:
    """Where a text comes from, if it knows."""
    return text.origins if isinstance(text, Labelled) else ()


UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""Control characters but tabs and line ends, what turns text around, and the invisible copy of ASCII."""

LONGEST: Final = 1024
"""Characters of an escape sequence. What is longer is text that hides behind one."""

ESCAPES: Final = re.compile(
    r"""\x1b(?: \[[0-?]{0,64}[ -/]{0,8}[@-~]                        # colours, cursor, screen
            | [\]PX^_][^\x07\x1b\x9c\n]{0,1024}(?:\x07|\x1b\\|\x9c)  # titles, links, the clipboard
            | [ -/]{1,8}[0-~]                                      # character sets
            | [0-Z\\-~]                                            # all that is short
        )""",
    re.VERBOSE,
)

UNENDED: Final = re.compile(
    r"""(?: \r
          | \x1b(?: \[[0-?]{0,64}[ -/]{0,8} | [\]PX^_][^\x07\x1b\x9c\n]{0,1024}\x1b? | [ -/]{0,8} )
        )\Z""",
    re.VERBOSE,
)
"""The beginning of a sequence that what comes next may end."""


def seen(text: str) -> str:
    """The text without them; a carriage return alone ends a line, so that nothing is written over."""
    if not UNSEEN.search(text):
        return text
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return UNSEEN.sub("", ESCAPES.sub("", lines))


class Seen:
    """The same for text that comes in pieces: a sequence may begin in one and end in the next."""

    def __init__(self) -> None:
        self._rest = ""

    def piece(self, text: str) -> str:
        """What of this piece, and of what was held back, is known to be text."""
        text = self._rest + text
        unended = UNENDED.search(text, max(0, len(text) - LONGEST - 4))
        known = len(text) if unended is None else unended.start()
        self._rest = text[known:]
        return seen(text[:known])

    def end(self) -> str:
        """What was held back: nothing will end it any more."""
        rest, self._rest = self._rest, ""
        return seen(rest)
