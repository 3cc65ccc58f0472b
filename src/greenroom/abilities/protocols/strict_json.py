"""Parse JSON strictly: a single value, no duplicate keys, and only values that can be encoded again."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, cast

MAX_DEPTH: Final = 64
"""Maximum nesting depth. Deeper values are an attack or a loop: tool arguments never need them."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?P<quote>"?)|[\[\]{}]', re.DOTALL)
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_BLANK: Final = re.compile(r"\s*+")
_KIND_NAMES: Final = {str: "a text", bool: "a truth", int: "a number", float: "a number", list: "a list"}


class ParseError(ValueError):
    """The text does not have the expected form. The message tells the model why."""


class MalformedJson(ParseError):
    """The text is not JSON. Another parser may still understand it."""


def decode(text: str) -> object:
    """Decode a single JSON value. Raise `ParseError` for anything else."""
    try:
        value: object = _STRICT.decode(text.strip())
    except json.JSONDecodeError as error:
        raise MalformedJson(f"{error.msg.removesuffix(' at')} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise ParseError("it is nested too deep") from None
    except ValueError as error:  # a number of five thousand digits
        raise ParseError(str(error)) from None
    if is_too_deep(value):
        raise ParseError(f"it is nested deeper than {MAX_DEPTH} levels")
    if _SURROGATE.search(text) and not is_encodable(json.dumps(value, ensure_ascii=False)):
        raise ParseError("it holds half a character")
    return value


def find_json_error(text: str) -> str:
    """Explain to the model why its text is not a JSON object. Return "" if it is valid, plain or encoded twice."""
    try:
        found = decode(text)
        found = decode(found) if isinstance(found, str) else found
    except ParseError as error:
        return str(error)
    return "" if isinstance(found, dict) else f"it is not an object, but {_KIND_NAMES.get(type(found), 'null')}"


def is_encodable(text: str) -> bool:
    """Return whether the text can be encoded. Lone surrogates cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def find_value_end(text: str, at: int) -> int | None:
    """Return where the JSON object that begins here ends, or None if there is no such object."""
    begin = cast("re.Match[str]", _BLANK.match(text, at)).end()
    if not text.startswith("{", begin):
        return None
    try:
        return _STRICT.raw_decode(text, begin)[1]
    except (ValueError, RecursionError):
        return None


def classify_shape(text: str) -> Literal["one", "cut off", "more"]:
    """Return whether quotes and brackets form one value, are still open at the end, or close before it."""
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


def is_too_deep(value: object, left: int = MAX_DEPTH) -> bool:
    """Return whether the value is nested more than `left` levels deep."""
    if not isinstance(value, dict | list):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return left == 0 or any(is_too_deep(part, left - 1) for part in parts)


def _reject_duplicate_keys(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ParseError(f"the key {twice!r} is there twice")
    return found


def _reject_constant(name: str) -> object:
    raise ParseError(f"{name} is not JSON")


def _parse_number(text: str) -> float:
    found = float(text)
    if found in (float("inf"), float("-inf")):
        raise ParseError(f"the number {text} is too large")
    return found


_STRICT: Final = json.JSONDecoder(
    object_pairs_hook=_reject_duplicate_keys, parse_constant=_reject_constant, parse_float=_parse_number
)


MAX_FAULT_CHARS: Final = 300
"""Maximum characters of one fault, so that a message never quotes a whole file."""

MAX_REPAIR_CHARS: Final = 100_000
"""Maximum characters of a text that is repaired. The model is asked to resend a longer text."""

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
_PYTHON_LITERALS: Final = {"True": "true", "False": "false", "None": "null"}


def repair(text: str) -> object:
    """Parse near-JSON: comments, extra commas, single quotes, bare keys or Python literals. Raise `ParseError` if the
    meaning is ambiguous."""
    if len(text) > MAX_REPAIR_CHARS:
        raise ParseError("it is too long to be mended")
    return decode(_FLAW.sub(_rewrite_token, text))


def decode_or_repair(text: str) -> tuple[object, str]:
    """Return the value, and what was repaired. Raise `ParseError` with a sentence for the model."""
    try:
        return decode(text), ""
    except MalformedJson as error:
        flaw = error
    except ParseError as error:
        raise ParseError(f"its JSON cannot be used: {error}.") from None
    try:
        return repair(text), str(flaw)
    except ParseError as error:
        if len(text) > MAX_REPAIR_CHARS or classify_shape(text) == "cut off":
            raise ParseError(f"it is cut off, or a quote is missing ({flaw}). Send it again, whole.") from None
        why = error if "twice" in str(error) else flaw
        raise ParseError(f"its JSON cannot be read ({why}).") from None


def _rewrite_token(found: re.Match[str]) -> str:
    match found.lastgroup:
        case "text":
            return _CONTROL.sub(lambda sign: json.dumps(sign[0])[1:-1], found[0])
        case "single" | "key":
            return json.dumps(found[found.lastgroup])
        case "nothing":
            return " "
        case _:
            return _PYTHON_LITERALS.get(found[0], found[0])


def truncate(text: str, max_chars: int = MAX_FAULT_CHARS) -> str:
    """Cut a text that is too long."""
    return text if len(text) <= max_chars else text[:max_chars] + "…"
