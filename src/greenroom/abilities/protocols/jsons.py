"""JSON, strictly: one value, no key twice, nothing that cannot be written down again."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
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
    parts = value.values() if isinstance(value, dict) else value
    return left == 0 or any(too_deep(part, left - 1) for part in parts)


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


LONGEST_FAULT: Final = 300
"""Characters of one fault: a message that quotes a whole file helps nobody."""

LONGEST: Final = 100_000
"""Characters that are mended: what is longer is asked for again."""

_COMMENT: Final = r"//[^\n]*+|#[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/"
_FLAW: Final = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*+")'
    r"|'(?P<single>[^'\"\\\n]*+)'"
    rf"|(?P<nothing>{_COMMENT}|,(?=(?:\s|{_COMMENT})*+[\]}}]))"
    r"|(?P<key>[^\W\d]\w*+)(?=\s*+:)"
    r"|(?P<word>[\w.+-]++)",
    re.DOTALL,
)
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_WORDS: Final = {"True": "true", "False": "false", "None": "null"}


def repair(text: str) -> object:
    """The value of nearly JSON: with comments, commas too many, single quotes, bare keys or Python's words.

    Raises `Unreadable` if it takes a guess to read it.
    """
    if len(text) > LONGEST:
        raise Unreadable("it is too long to be mended")
    return decode(_FLAW.sub(_rewrite, text))


def decode_or_repair(text: str) -> tuple[object, str]:
    """The value, and what was wrong if it had to be repaired; `Unreadable` with a sentence for the model."""
    try:
        return decode(text), ""
    except Malformed as error:
        flaw = error
    except Unreadable as error:
        raise Unreadable(f"its JSON cannot be used: {error}.") from None
    try:
        return repair(text), str(flaw)
    except Unreadable as error:
        if len(text) > LONGEST or shape(text) == "cut off":
            raise Unreadable(f"it is cut off, or a quote is missing ({flaw}). Send it again, whole.") from None
        why = error if "twice" in str(error) else flaw
        raise Unreadable(f"its JSON cannot be read ({why}).") from None


def _rewrite(found: re.Match[str]) -> str:
    match found.lastgroup:
        case "text":
            return _CONTROL.sub(lambda sign: json.dumps(sign[0])[1:-1], found[0])
        case "single" | "key":
            return json.dumps(found[found.lastgroup])
        case "nothing":
            return " "
        case _:
            return _WORDS.get(found[0], found[0])


def brief(text: str, most: int = LONGEST_FAULT) -> str:
    """The beginning of a text that is too long."""
    return text if len(text) <= most else text[:most] + "…"
