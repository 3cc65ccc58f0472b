"""Parse the YAML that models write: plain data only.

Aliases are refused, because a few lines can expand to gigabytes. Tags, duplicate keys and deep nesting are refused too.
`no`, `1:30` and `2026-01-01` stay text, as in the core schema of YAML 1.2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

import yaml

from greenroom.abilities.protocols.strict_json import MAX_DEPTH, ParseError, truncate

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,300}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)(?:[eE][-+]?[0-9]++)?")
_COMMENT: Final = re.compile(r"[ \t]++#")
CORE_WORDS: Final[dict[str, object]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(text: str, *, typed: bool = True) -> object:
    """Load a single document. `ParseError` names the problem and its position. If not `typed`, every scalar is text."""
    try:
        value = _YamlReader(text, typed=typed).read_document()
    except yaml.MarkedYAMLError as error:
        raise ParseError(f"{error.problem or error.context}{_describe_position(error)}") from None
    except yaml.YAMLError as error:
        raise ParseError(str(error).partition("\n")[0]) from None
    except UnicodeEncodeError:
        raise ParseError("it holds half a character") from None
    return value


def dump(text: str) -> str:
    """Write a text as one quoted line of YAML."""
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=math.inf).rstrip("\n")


def _describe_position(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f" at line {mark.line + 1} column {mark.column + 1}" if mark else ""


class _YamlReader:
    """Reads the events of one text into plain data."""

    def __init__(self, text: str, *, typed: bool) -> None:
        self._text = text
        self._typed = typed
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)

    def read_document(self) -> object:
        next(self._events)  # the stream begins
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise ParseError("it is empty")
        value = self._read_node(next(self._events), MAX_DEPTH)
        next(self._events)  # the document ends
        if not isinstance(next(self._events), yaml.StreamEndEvent):
            raise ParseError("there is more than one document in it")
        return value

    def _read_node(self, event: yaml.Event, left: int) -> object:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ParseError("aliases (& and *) cannot be used; put a text that begins with one in quotes")
        if getattr(event, "tag", None):
            raise ParseError("tags (!) cannot be used; put a text that begins with one in quotes")
        if left == 0:
            raise ParseError(f"it is nested deeper than {MAX_DEPTH} levels")
        match event:
            case yaml.ScalarEvent():
                return self._read_scalar(event)
            case yaml.SequenceStartEvent():
                return self._read_sequence(left)
            case _:
                return self._read_mapping(left)

    def _read_sequence(self, left: int) -> list[object]:
        found: list[object] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            found.append(self._read_node(event, left - 1))
        return found

    def _read_mapping(self, left: int) -> dict[str, object]:
        found: dict[str, object] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise ParseError("a key must be a word")
            self._read_node(event, left)
            if event.value in found:
                raise ParseError(f"the key {event.value!r} is there twice")
            found[event.value] = self._read_node(next(self._events), left - 1)
        return found

    def _read_scalar(self, event: yaml.ScalarEvent) -> object:
        if not event.implicit[0]:
            return event.value
        # A comment would silently drop half of "see issue #3".
        end = event.end_mark.index if event.end_mark else 0
        if _COMMENT.match(self._text, end):
            raise ParseError(
                f"what follows {truncate(event.value)!r} would be a comment; put a text with ' #' in quotes"
            )
        return resolve_plain_scalar(event.value) if self._typed else event.value


def resolve_plain_scalar(text: str) -> object:
    """Return the value of a text without quotes, as in the core schema of YAML 1.2."""
    if text in CORE_WORDS:
        return CORE_WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    number = float(text) if _FLOAT.fullmatch(text) else math.nan
    return number if math.isfinite(number) else text
