"""Words and schemas of servers before a model reads them: nothing unseen, endless or elsewhere is left in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from greenroom.core.base.records import Data, encode
from greenroom.core.base.text import seen

INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0100-\U000e01ef\ud800-\udfff]"
)
"""What has no shape of its own: a second text can be hidden in it. Results keep it (emoji need it), orders do not."""

NOTE: Final = "[… {left} characters are left out …]"


def plain(text: str) -> str:
    """The text without anything that a person would not see."""
    return INVISIBLE.sub("", seen(text))


def is_plain(text: str) -> bool:
    """Whether there is nothing of that kind in it."""
    return plain(text) == text


def brief(text: str, most: int) -> str:
    """The text in about so many characters: its beginning and its end, and how much is missing between."""
    if len(text) <= most:
        return text
    tail = most // 5
    return f"{text[: most - tail]}\n{NOTE.format(left=len(text) - most)}\n{text[-tail:]}"


def one_line(text: str, most: int = 300) -> str:
    """The same as part of a sentence."""
    words = " ".join(plain(text).split())
    return words if len(words) <= most else f"{words[:most]}…"


LARGEST: Final = 32_000
"""Bytes: each request would carry them."""

DEEPEST: Final = 32
WIDEST: Final = 4_000
"""Parts, with everything that it refers to in its place."""

SPOKEN: Final = frozenset({"description", "title", "$comment"})
"""What is meant for readers; the rest is meant to be exact, and nothing is changed in it."""

ELSEWHERE: Final = ("$dynamicRef", "$recursiveRef")
PARAMETER: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Unfit(ValueError):
    """A schema that is not used. Its text ends a sentence that begins with "its schema"."""


def tidy(schema: object) -> Data:
    """The schema as a model is shown it; `Unfit` says why it is not shown."""
    if not isinstance(schema, Mapping):
        raise Unfit("is no JSON object")
    if depth(schema) > DEEPEST:
        raise Unfit(f"is nested more than {DEEPEST} levels deep")
    if (size := len(encode(schema))) > LARGEST:
        raise Unfit(f"has {size} bytes; {LARGEST} are the most")
    if schema.get("type", "object") != "object":
        raise Unfit("is not of the type object")
    if (parts := _Sizes(schema).of(schema, ())) > WIDEST:
        raise Unfit(f"has {parts} parts when all that it refers to is counted; {WIDEST} are the most")
    cleaned = {"type": "object", **_cleaned(schema)}
    _refuse_parameters(cleaned)
    _refuse_nonsense(cleaned)
    return cleaned


def depth(node: object) -> int:
    """How deep it is nested; not counted on where it is much too deep."""
    level, found = [node], 0
    while level and found <= DEEPEST + 1:
        found += 1
        level = [child for one in level for child in _children(one)]
    return found - 1


def _children(node: object) -> Iterator[object]:
    if isinstance(node, Mapping):
        yield from node.values()
    elif isinstance(node, list | tuple):
        yield from node


class _Sizes:
    """How many parts a schema has with each reference followed: a small text can stand for more than anybody has."""

    def __init__(self, root: Data) -> None:
        self._root = root
        self._known: dict[str, int] = {}

    def of(self, node: object, inside: tuple[str, ...]) -> int:
        if isinstance(node, Mapping):
            if any(isinstance(node.get(word), str) for word in ELSEWHERE):
                raise Unfit("refers to what is only known when it is used")
            reference = node.get("$ref")
            more = self._behind(reference, inside) if isinstance(reference, str) else 0
        else:
            more = 0
        return 1 + more + sum(self.of(child, inside) for child in _children(node))

    def _behind(self, reference: str, inside: tuple[str, ...]) -> int:
        if reference in inside or reference == "#":
            raise Unfit("refers to itself")
        if not reference.startswith("#/"):
            raise Unfit(f"refers to {one_line(reference, 80)!r}, which is elsewhere")
        if len(inside) > DEEPEST:
            raise Unfit(f"has a chain of more than {DEEPEST} references")
        if reference not in self._known:
            self._known[reference] = self.of(self._target(reference), (*inside, reference))
        return self._known[reference]

    def _target(self, reference: str) -> object:
        found: object = self._root
        for step in reference.removeprefix("#/").split("/"):
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                raise Unfit(f"refers to {one_line(reference, 80)!r}, which is not there")
            found = found[key]
        return found


def _cleaned(node: Data) -> dict[str, object]:
    return {_exact(key): _clean(value, spoken=key in SPOKEN) for key, value in node.items()}


def _clean(node: object, *, spoken: bool = False) -> object:
    if isinstance(node, str):
        return plain(node) if spoken else _exact(node)
    if isinstance(node, Mapping):
        return _cleaned(node)
    if isinstance(node, list | tuple):
        return [_clean(child) for child in node]
    return node


def _exact(text: str) -> str:
    if not is_plain(text):
        raise Unfit("has characters in it that nobody sees")
    return text


def _refuse_parameters(schema: Data) -> None:
    """Providers refuse the whole request for one such name."""
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        raise Unfit("has properties that are no table")
    for name in properties:
        if not PARAMETER.fullmatch(name):
            raise Unfit(f"has a parameter {one_line(name, 80)!r}; letters, digits, _ . and - are taken, 64 at most")


def _refuse_nonsense(schema: Data) -> None:
    from jsonschema_rs import validator_for

    try:
        validator_for(dict(schema), offline=True)
    except (TypeError, ValueError) as error:
        raise Unfit(f"is none: {one_line(str(error), 200)}") from None
