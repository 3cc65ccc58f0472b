"""JSON, strictly: one value, no key twice, nothing that cannot be written down again."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Literal, cast

MAX_DEPTH: Final = 64
"""Deeper than any tool's arguments; what is deeper is an attack or a loop."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?P<quote>"?)|[\[\]{}]', re.DOTALL)
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_BLANK: Final = re.compile(r"\s*+")
_KINDS: Final = {str: "a text", bool: "a truth", int: "a number", float: "a number", list: "a list"}


class Unreadable(ValueError):
    """Not what it should be; the message says why, for the model."""


class Malformed(Unreadable):
    """No JSON at all; somebody else may see what was meant."""


def decode(text: str) -> object:
    """The one JSON value in this text; `Unreadable` for anything less or more."""
    try:
        value: object = _STRICT.decode(text.strip())
    except json.JSONDecodeError as error:
        raise Malformed(f"{error.msg.removesuffix(' at')} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise Unreadable("it is nested too deep") from None
    except ValueError as error:  # a number of five thousand digits
        raise Unreadable(str(error)) from None
    if too_deep(value):
        raise Unreadable(f"it is nested deeper than {MAX_DEPTH} levels")
    if _HALF.search(text) and not encodable(json.dumps(value, ensure_ascii=False)):
        raise Unreadable("it holds half a character")
    return value


def flaw(text: str) -> str:
    """Why this text is no JSON object, for the model that wrote it; empty if it is one, as it is or encoded twice."""
    try:
        found = decode(text)
        found = decode(found) if isinstance(found, str) else found
    except Unreadable as error:
        return str(error)
    return "" if isinstance(found, dict) else f"it is no object, but {_KINDS.get(type(found), 'null')}"


def encodable(text: str) -> bool:
    """Whether it can be written down: halves of a character (surrogates) cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def value_end(text: str, at: int) -> int | None:
    """Where the JSON object ends that begins here; None if none does."""
    begin = cast("re.Match[str]", _BLANK.match(text, at)).end()
    if not text.startswith("{", begin):
        return None
    try:
        return _STRICT.raw_decode(text, begin)[1]
    except (ValueError, RecursionError):
        return None


def shape(text: str) -> Literal["one", "cut off", "more"]:
    """Whether quotes and brackets make one value, are still open at the end, or are closed before it."""
    depth, over, end = 0, False, 0
    for token in _TOKEN.finditer(text):
        if over:
            return "more"
        mark = token[0][0]
        if mark == '"' and not token["quote"]:
            return "cut off"
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(mark, 0)
        over, end = depth <= 0, token.end()
    if not over:
        return "cut off"
    return "more" if text[end:].strip() else "one"


def too_deep(value: object, left: int = MAX_DEPTH) -> bool:
    """Whether there are more levels than `left`."""
    if not isinstance(value, dict | list):
        return False
    return left == 0 or any(too_deep(part, left - 1) for part in _parts(value))


def _parts(value: dict[object, object] | list[object]) -> Iterator[object]:
    yield from value.values() if isinstance(value, dict) else value


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise Unreadable(f"the key {twice!r} is there twice")
    return found


def _no_constant(name: str) -> object:
    raise Unreadable(f"{name} is not JSON")


def _number(text: str) -> float:
    found = float(text)
    if found in (float("inf"), float("-inf")):
        raise Unreadable(f"the number {text} is too large")
    return found


_STRICT: Final = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_number)


LONGEST: Final = 100_000
"""Characters that are mended: what is longer is asked for again."""

_SPACE: Final = re.compile(r"(?:\s++|//[^\n]*+|#[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
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
        blank = _SPACE.match(self._text, self._at)
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
