"""Embed external text safely: add fences, lower headings, keep labels, remove control characters."""

from __future__ import annotations

import re
from typing import Final, Self

_TICKS: Final = re.compile(r"`{3,}")


def add_fence(text: str) -> str:
    longest = max((len(found) for found in _TICKS.findall(text)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}\n{text.rstrip(chr(10))}\n{ticks}"


_MARKS: Final = r"(?:[\s>\u200b-\u200d\u2060\ufeff]|[-*+]\s|\d{1,9}[.)]\s)*"
"""What may precede a heading: spaces, invisible characters, quote and list markers."""

_HIGH_HEADING: Final = re.compile(rf"({_MARKS})#{{1,2}}(?!#)(?=\s|$)")
_UNDERLINE: Final = re.compile(rf"{_MARKS}(?:=+|-+)\s*")
_HEADING: Final = re.compile(rf"{_MARKS}#{{1,6}}(?:\s|$)")


def is_heading(line: str) -> bool:
    """Return whether a line is a heading of any level."""
    return _HEADING.match(line) is not None


def has_high_heading(text: str) -> bool:
    """Return whether the text has a first-level or second-level heading, marked or underlined."""
    lines = text.splitlines()
    marked = any(_HIGH_HEADING.match(line) for line in lines)
    return marked or any(map(_is_underline, lines, lines[1:]))


def is_underline_of(above: str, text: str) -> bool:
    """Return whether `text`, placed below `above`, turns the last line of `above` into a heading."""
    return any(map(_is_underline, above.splitlines()[-1:], text.splitlines()[:1]))


def lower_headings(text: str) -> str:
    """Lower all headings to the third level or below, and normalise line ends."""
    lines: list[str] = []
    for line in text.splitlines():
        if lines and _is_underline(lines[-1], line):
            lines[-1] = lines[-1] if is_heading(lines[-1]) else f"### {lines[-1].lstrip()}"
            continue
        lines.append(_HIGH_HEADING.sub(r"\1###", line, count=1) if _HIGH_HEADING.match(line) else line)
    return "\n".join(lines).strip()


def _is_underline(above: str, line: str) -> bool:
    """Return whether a line of `=` or `-` turns the non-blank line above it into a heading."""
    return bool(above.strip(" \t")) and _UNDERLINE.fullmatch(line) is not None


class LabelledText(str):
    """A string that carries the origin labels (`core/state/origin.py`) of its external parts."""

    __slots__ = ("origins",)
    origins: tuple[str, ...]

    def __new__(cls, text: str, origins: tuple[str, ...] = ()) -> Self:
        """Make a string with origin labels."""
        new_text = super().__new__(cls, text)
        new_text.origins = origins
        return new_text


def origins_of(text: str) -> tuple[str, ...]:
    """Return the origin labels of a text; empty for a plain string."""
    return text.origins if isinstance(text, LabelledText) else ()


CONTROL_CHARACTERS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
"""Control characters except tabs and line ends, bidirectional overrides, and the invisible copy of ASCII."""

MAX_ESCAPE_CHARS: Final = 1024
"""Maximum characters of an escape sequence. A longer one is treated as text that tries to hide."""

ESCAPE_SEQUENCES: Final = re.compile(
    r"""\x1b(?: \[[0-?]{0,64}[ -/]{0,8}[@-~]                        # colours, cursor, screen
            | [\]PX^_][^\x07\x1b\x9c\n]{0,1024}(?:\x07|\x1b\\|\x9c)  # titles, links, the clipboard
            | [ -/]{1,8}[0-~]                                      # character sets
            | [0-Z\\-~]                                            # short sequences
        )""",
    re.VERBOSE,
)

UNFINISHED_ESCAPE: Final = re.compile(
    r"""(?: \r
          | \x1b(?: \[[0-?]{0,64}[ -/]{0,8} | [\]PX^_][^\x07\x1b\x9c\n]{0,1024}\x1b? | [ -/]{0,8} )
        )\Z""",
    re.VERBOSE,
)
"""The beginning of a sequence that the next piece may finish."""


def remove_control_characters(text: str) -> str:
    """Remove control characters and escape sequences. A lone carriage return becomes a line end."""
    if not CONTROL_CHARACTERS.search(text):
        return text
    return CONTROL_CHARACTERS.sub("", ESCAPE_SEQUENCES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


class ControlCharacterFilter:
    """Filter text that arrives in pieces. A sequence may begin in one piece and end in the next."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> str:
        """Return the filtered text that is certain so far, and hold back an unfinished sequence."""
        text = self._rest + text
        unended = UNFINISHED_ESCAPE.search(text, max(0, len(text) - MAX_ESCAPE_CHARS - 4))
        known = len(text) if unended is None else unended.start()
        self._rest = text[known:]
        return remove_control_characters(text[:known])

    def end(self) -> str:
        """Return the text still held back."""
        rest, self._rest = self._rest, ""
        return remove_control_characters(rest)


def escape_surrogates(value: object) -> object:
    """Return a text, or a list of texts, that UTF-8 can hold: a byte of a file name that is not becomes an escape."""
    if isinstance(value, list | tuple):
        return [escape_surrogates(item) for item in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
