"""From a file's bytes to its text and back, without changing what was not meant: encoding, mark, line endings."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from greenroom.core.base.errors import ModelFault

MARKS: Final = (
    (codecs.BOM_UTF32_LE, ""),  # before UTF-16's, which it begins with
    (codecs.BOM_UTF32_BE, ""),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
CRLF: Final = re.compile(r"\r\n")


def counted(number: int, what: str) -> str:
    """So many of something, in words: 1 line, 1,200 bytes."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


class Unreadable(ModelFault):
    """A file that is no text, or none that we can write back as it was."""

    reason = "not_text"


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text, with its own line endings, and how it is written as bytes."""

    content: str
    codec: str = "utf-8"
    mark: bytes = b""

    def encoded(self, content: str, path: str) -> bytes:
        """Another text as the bytes of this file."""
        if "\x00" in content:
            raise Unreadable(f"The new text of {path!r} has a NUL character in it: that is no text file.")
        try:
            return self.mark + content.encode(self.codec)
        except UnicodeEncodeError as error:
            raise Unreadable(f"The new text of {path!r} cannot be written as {self.codec}: {error}.") from error


def decoded(raw: bytes, path: str) -> Text:
    """The text of a file, or why it has none."""
    for mark, codec in MARKS:
        if raw.startswith(mark):
            return _decoded(raw[len(mark) :], path, codec, mark)
    return _decoded(raw, path, "utf-8", b"")


def _decoded(raw: bytes, path: str, codec: str, mark: bytes) -> Text:
    if not codec:
        raise Unreadable(f"{path!r} is UTF-32. Only UTF-8, and UTF-16 with a byte order mark, can be read here.")
    try:
        content = raw.decode(codec)
    except UnicodeDecodeError as error:
        if b"\x00" in raw[:8192] and not mark:
            raise _binary(path) from error
        at = f"at byte {error.start + len(mark):,}"
        raise Unreadable(
            f"{path!r} is not {codec.upper()} ({at}). Only UTF-8, and UTF-16 with a byte order mark, can be read here."
        ) from error
    if "\x00" in content:
        raise _binary(path)
    return Text(content=content, codec=codec, mark=mark)


def _binary(path: str) -> Unreadable:
    return Unreadable(f"{path!r} is a binary file: there is no text to read or change in it.")


class Flat:
    """A text with plain line ends, in which one searches, and the way from its places to those of the original."""

    def __init__(self, content: str) -> None:
        self.original = content
        # Each CRLF is one character shorter here, so the n-th of them stands n places earlier.
        self._pairs: Sequence[int] = [found.start() - number for number, found in enumerate(CRLF.finditer(content))]
        self.text = content.replace("\r\n", "\n") if self._pairs else content

    @property
    def lines(self) -> int:
        """How many there are; a last one without an end counts too."""
        return self.text.count("\n") + bool(self.text and not self.text.endswith("\n"))

    def original_at(self, place: int) -> int:
        """Where this place is in the original: before the whole line end, if it is one."""
        return place + bisect_left(self._pairs, place)

    def line_of(self, place: int) -> int:
        """The number of the line, from 1."""
        return self.text.count("\n", 0, place) + 1

    def line_start(self, line: int) -> int:
        """Where a line begins; the text's end for one behind the last."""
        place = 0
        for _ in range(line - 1):
            place = self.text.find("\n", place) + 1
            if not place:
                return len(self.text)
        return place

    def ending_at(self, place: int) -> str:
        """The line end that fits here: the one of this line, else the one before it."""
        near = self.text.find("\n", place)
        if near < 0:
            near = self.text.rfind("\n", 0, place)
        spot = bisect_left(self._pairs, near)
        return "\r\n" if spot < len(self._pairs) and self._pairs[spot] == near and near >= 0 else "\n"

    @property
    def usual_ending(self) -> str:
        """The line end that most lines have."""
        return "\r\n" if len(self._pairs) * 2 > self.text.count("\n") else "\n"


def flat(content: str) -> str:
    """The text with plain line ends."""
    return content.replace("\r\n", "\n")
