"""Decode a file's bytes to text and encode it again. Encoding, byte order mark and line endings are preserved."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from greenroom.core.base.errors import ModelFault

BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF32_LE, ""),  # before UTF-16, which has the same first bytes
    (codecs.BOM_UTF32_BE, ""),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
CRLF: Final = re.compile(r"\r\n")


def format_count(number: int, what: str) -> str:
    """Format a count with its noun: 1 line, 1,200 bytes."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


class NotTextError(ModelFault):
    """The file is not text, or not text that can be written back unchanged."""

    reason = "not_text"


@dataclass(frozen=True, slots=True)
class FileText:
    """A file's text with its original line endings, and its encoding."""

    content: str
    codec: str = "utf-8"
    mark: bytes = b""

    def encode(self, content: str, path: str) -> bytes:
        """Encode new content in the file's encoding."""
        if "\x00" in content:
            raise NotTextError(f"The new text of {path!r} has a NUL character in it: that is not a text file.")
        try:
            return self.mark + content.encode(self.codec)
        except UnicodeEncodeError as error:
            raise NotTextError(f"The new text of {path!r} cannot be written as {self.codec}: {error}.") from error


def decode_text(raw: bytes, path: str) -> FileText:
    """Decode the text of a file. Raise `NotTextError` if that is impossible."""
    for mark, codec in BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return _decode_with(raw[len(mark) :], path, codec, mark)
    return _decode_with(raw, path, "utf-8", b"")


def _decode_with(raw: bytes, path: str, codec: str, mark: bytes) -> FileText:
    if not codec:
        raise NotTextError(f"{path!r} is UTF-32. Only UTF-8, and UTF-16 with a byte order mark, can be read here.")
    try:
        content = raw.decode(codec)
    except UnicodeDecodeError as error:
        if b"\x00" in raw[:8192] and not mark:
            raise _build_binary_error(path) from error
        at = f"at byte {error.start + len(mark):,}"
        raise NotTextError(
            f"{path!r} is not {codec.upper()} ({at}). Only UTF-8, and UTF-16 with a byte order mark, can be read here."
        ) from error
    if "\x00" in content:
        raise _build_binary_error(path)
    return FileText(content=content, codec=codec, mark=mark)


def _build_binary_error(path: str) -> NotTextError:
    return NotTextError(f"{path!r} is a binary file: there is no text to read or change in it.")


class NormalizedText:
    """A text with plain line endings for searching, and the mapping of its positions to the original."""

    def __init__(self, content: str) -> None:
        self.original = content
        # Each CRLF is one character shorter here, so the n-th CRLF is n positions earlier.
        self._pairs: Sequence[int] = [found.start() - number for number, found in enumerate(CRLF.finditer(content))]
        self.text = content.replace("\r\n", "\n") if self._pairs else content

    @property
    def lines(self) -> int:
        """The number of lines, including a last line without a line ending."""
        return self.text.count("\n") + bool(self.text and not self.text.endswith("\n"))

    def to_original(self, place: int) -> int:
        """Return the position in the original. A line ending maps to its start."""
        return place + bisect_left(self._pairs, place)

    def find_line(self, place: int) -> int:
        """Return the line number, from 1."""
        return self.text.count("\n", 0, place) + 1

    def find_line_start(self, line: int) -> int:
        """Return where a line begins, or the end of the text after the last line."""
        place = 0
        for _ in range(line - 1):
            place = self.text.find("\n", place) + 1
            if not place:
                return len(self.text)
        return place

    def find_line_end(self, place: int) -> str:
        """Return the line ending that fits here: that of this line, else of the line before."""
        near = self.text.find("\n", place)
        if near < 0:
            near = self.text.rfind("\n", 0, place)
        spot = bisect_left(self._pairs, near)
        return "\r\n" if spot < len(self._pairs) and self._pairs[spot] == near and near >= 0 else "\n"

    @property
    def usual_line_end(self) -> str:
        """The most frequent line ending."""
        return "\r\n" if len(self._pairs) * 2 > self.text.count("\n") else "\n"


def normalize_line_ends(content: str) -> str:
    """Replace every line ending with a line feed."""
    return content.replace("\r\n", "\n")
