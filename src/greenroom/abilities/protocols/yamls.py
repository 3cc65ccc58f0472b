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

from greenroom.abilities.protocols.jsons import MAX_DEPTH, Unreadable, brief

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,300}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)(?:[eE][-+]?[0-9]++)?")
_COMMENT: Final = re.compile(r"[ \t]++#")
_WORDS: Final[dict[str, object]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(text: str, *, typed: bool = True) -> object:
    """The one document in this text; `Unreadable` says what is wrong and where. Not `typed`: every word is a text."""
    try:
        value = _Reader(text, typed=typed).document()
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


class _Reader:
    """Reads the events of one text into plain data."""

    def __init__(self, text: str, *, typed: bool) -> None:
        self._text = text
        self._typed = typed
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)

    def document(self) -> object:
        """The one document."""
        next(self._events)  # the stream begins
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise Unreadable("it is empty")
        value = self._node(next(self._events), MAX_DEPTH)
        next(self._events)  # the document ends
        if not isinstance(next(self._events), yaml.StreamEndEvent):
            raise Unreadable("there is more than one document in it")
        return value

    def _node(self, event: yaml.Event, left: int) -> object:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise Unreadable("aliases (& and *) cannot be used; put a text that begins with one in quotes")
        if getattr(event, "tag", None):
            raise Unreadable("tags (!) cannot be used; put a text that begins with one in quotes")
        if left == 0:
            raise Unreadable(f"it is nested deeper than {MAX_DEPTH} levels")
        match event:
            case yaml.ScalarEvent():
                return self._scalar(event)
            case yaml.SequenceStartEvent():
                return self._sequence(left)
            case _:
                return self._mapping(left)

    def _sequence(self, left: int) -> list[object]:
        found: list[object] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            found.append(self._node(event, left - 1))
        return found

    def _mapping(self, left: int) -> dict[str, object]:
        found: dict[str, object] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise Unreadable("a key must be a word")
            self._node(event, left)
            if event.value in found:
                raise Unreadable(f"the key {event.value!r} is there twice")
            found[event.value] = self._node(next(self._events), left - 1)
        return found

    def _scalar(self, event: yaml.ScalarEvent) -> object:
        if not event.implicit[0]:
            return event.value
        # Half of "see issue #3" would be lost without a word.
        end = event.end_mark.index if event.end_mark else 0
        if _COMMENT.match(self._text, end):
            raise Unreadable(f"what follows {brief(event.value)!r} would be a comment; put a text with ' #' in quotes")
        return _plain(event.value) if self._typed else event.value


def _plain(text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    number = float(text) if _FLOAT.fullmatch(text) else math.nan
    return number if math.isfinite(number) else text
