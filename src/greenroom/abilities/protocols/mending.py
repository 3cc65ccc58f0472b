"""JSON with mistakes that change no value: the only ones that are mended.

A comma too many, texts in single quotes, keys without quotes, Python's words for true, false and null, comments, line
breaks inside a text. Each of them can mean one thing only. All else would be a guess, and a guess is not run.
"""

from __future__ import annotations

import json
import re
from typing import Final

from greenroom.abilities.protocols.jsons import MAX_DEPTH, Unreadable, decode, encodable

LONGEST: Final = 100_000
"""Characters that are mended: what is longer is asked for again."""

_BLANK: Final = re.compile(r"(?:\s++|//[^\n]*+|#[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_TEXT: Final = re.compile(r'"(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_SINGLE: Final = re.compile(r"'([^'\"\\\n]*+)'")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?(?![\w.])")
_WORD: Final = re.compile(r"[^\W\d]\w*+")
_WORDS: Final[dict[str, object]] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
}


def mended(text: str) -> object:
    """The one value in this text; `Unreadable` if it takes a guess to read it."""
    if len(text) > LONGEST:
        raise Unreadable("it is too long to be mended")
    return _Reader(text).document()


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self) -> object:
        """The one value."""
        value = self._value(MAX_DEPTH)
        if self._next():
            raise self._fault("there is something behind it")
        if not encodable(json.dumps(value, ensure_ascii=False)):
            raise Unreadable("it holds half a character")
        return value

    def _next(self) -> str:
        """The next sign that means something; empty at the end."""
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        return self._text[self._at : self._at + 1]

    def _taken(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found

    def _value(self, left: int) -> object:
        sign = self._next()
        if left == 0:
            raise Unreadable(f"it is nested deeper than {MAX_DEPTH} levels")
        if sign == "{":
            return self._object(left)
        if sign == "[":
            return self._list(left)
        if sign in ('"', "'"):
            return self._string()
        number = self._taken(_NUMBER)
        if number:
            return decode(number[0])
        word = self._taken(_WORD)
        if word is None or word[0] not in _WORDS:
            raise self._fault("no value")
        return _WORDS[word[0]]

    def _string(self) -> str:
        found = self._taken(_TEXT)
        if found:
            return str(json.loads(found[0], strict=False))
        single = self._taken(_SINGLE)
        if single is None:
            raise self._fault("a text that can be read in more than one way")
        return single[1]

    def _object(self, left: int) -> dict[str, object]:
        found: dict[str, object] = {}
        self._at += 1
        while (sign := self._next()) != "}":
            key = self._string() if sign in ('"', "'") else self._key()
            if key in found:
                raise Unreadable(f"the key {key!r} is there twice")
            if self._next() != ":":
                raise self._fault("no colon")
            self._at += 1
            found[key] = self._value(left - 1)
            self._comma("}")
        self._at += 1
        return found

    def _list(self, left: int) -> list[object]:
        found: list[object] = []
        self._at += 1
        while self._next() != "]":
            found.append(self._value(left - 1))
            self._comma("]")
        self._at += 1
        return found

    def _key(self) -> str:
        word = self._taken(_WORD)
        if word is None:
            raise self._fault("no key")
        return word[0]

    def _comma(self, end: str) -> None:
        sign = self._next()
        if sign == ",":
            self._at += 1
        elif sign != end:
            raise self._fault("no comma")

    def _fault(self, what: str) -> Unreadable:
        return Unreadable(f"{what} at character {self._at + 1}")
