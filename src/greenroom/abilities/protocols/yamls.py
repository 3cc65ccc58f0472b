"""YAML as models write it: plain data only.

No aliases (a few lines of them can stand for gigabytes), no tags, no key twice, no deep nesting; and a word is a word:
`no`, `1:30` and `2026-01-01` stay text, as in YAML 1.2's core schema.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

import yaml

from greenroom.abilities.protocols.jsons import MAX_DEPTH, Unreadable

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,300}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)(?:[eE][-+]?[0-9]++)?")
_WORDS: Final[dict[str, object]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(text: str) -> object:
    """The one document in this text; `Unreadable` says what is wrong and where."""
    try:
        events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)
        value = _document(events)
    except yaml.MarkedYAMLError as error:
        raise Unreadable(f"{error.problem or error.context}{_where(error)}") from None
    except yaml.YAMLError as error:
        raise Unreadable(str(error).partition("\n")[0]) from None
    except UnicodeEncodeError:
        raise Unreadable("it holds half a character") from None
    return value


def dump(text: str) -> str:
    """A text as one line of YAML, in quotes."""
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=math.inf).rstrip("\n")


def _where(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f" at line {mark.line + 1} column {mark.column + 1}" if mark else ""


def _document(events: Iterator[yaml.Event]) -> object:
    next(events)  # the stream begins
    if isinstance(next(events), yaml.StreamEndEvent):
        raise Unreadable("it is empty")
    value = _node(events, next(events), MAX_DEPTH)
    next(events)  # the document ends
    if not isinstance(next(events), yaml.StreamEndEvent):
        raise Unreadable("there is more than one document in it")
    return value


def _node(events: Iterator[yaml.Event], event: yaml.Event, left: int) -> object:
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        raise Unreadable("aliases (& and *) cannot be used; put a text that begins with one in quotes")
    if getattr(event, "tag", None):
        raise Unreadable("tags (!) cannot be used; put a text that begins with one in quotes")
    if left == 0:
        raise Unreadable(f"it is nested deeper than {MAX_DEPTH} levels")
    match event:
        case yaml.ScalarEvent():
            return _scalar(event.value) if event.implicit[0] else event.value
        case yaml.SequenceStartEvent():
            return _sequence(events, left)
        case _:
            return _mapping(events, left)


def _sequence(events: Iterator[yaml.Event], left: int) -> list[object]:
    found: list[object] = []
    while not isinstance(event := next(events), yaml.SequenceEndEvent):
        found.append(_node(events, event, left - 1))
    return found


def _mapping(events: Iterator[yaml.Event], left: int) -> dict[str, object]:
    found: dict[str, object] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        if not isinstance(event, yaml.ScalarEvent):
            raise Unreadable("a key must be a word")
        _node(events, event, left)
        if event.value in found:
            raise Unreadable(f"the key {event.value!r} is there twice")
        found[event.value] = _node(events, next(events), left - 1)
    return found


def _scalar(text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
