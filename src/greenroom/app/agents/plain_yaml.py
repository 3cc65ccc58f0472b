"""YAML as people write it into a file: plain data with comments, and in which line each key stands.

No aliases (a few lines of them can stand for gigabytes), no tags, no key twice; and a word is a word: `no`, `1:30` and
`2026-01-01` stay text, as in YAML 1.2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, cast

import yaml

from greenroom.core.base.records import Data, record

DEEPEST: Final = 50
COLON: Final = "mapping values are not allowed"
WORDS: Final[dict[str, object]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class NotPlain(ValueError):
    """Not YAML, or more of it than is read here. `line` counts from 1."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(why)
        self.line: Final = line


@record
class Keys:
    """What a text says, and the line of each key; `a.b` is `b` in the table `a`."""

    values: Data
    lines: Mapping[str, int]


def read_keys(text: str) -> Keys:
    """The keys of this text; none if there is nothing but comments."""
    lines: dict[str, int] = {}
    try:
        _refuse_what_stands_for_more(text)
        node = yaml.compose(text, Loader=_LOADER)
        if node is None:
            return Keys(values={}, lines={})
        if not isinstance(node, yaml.MappingNode):
            raise NotPlain("there are no keys in it. Write them like `name: code-reviewer`", _line(node))
        return Keys(values=cast("Data", _value(node, "", lines)), lines=lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise NotPlain(
            _said(error.problem or error.context or "it is not YAML"), mark.line + 1 if mark else 1
        ) from None
    except yaml.YAMLError as error:
        raise NotPlain(str(error).partition("\n")[0], 1) from None


def dump(text: str) -> str:
    """A text as one line of YAML: a word as it is, all else in quotes."""
    if re.fullmatch(r"[^\W\d][\w-]*", text) and text not in WORDS:
        return text
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=math.inf).rstrip("\n")


def _said(why: str) -> str:
    return f'{why}. Put a text with ": " in it in quotes' if COLON in why else why


def _refuse_what_stands_for_more(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        line = event.start_mark.line + 1 if event.start_mark else 1
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise NotPlain("it is nested too deeply. Write it flatter", line)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise NotPlain("aliases (& and *) are not read. Put a text that begins with one in quotes", line)
        if getattr(event, "tag", None):
            raise NotPlain("tags (!) are not read. Put a text that begins with one in quotes", line)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _value(node: yaml.Node, above: str, lines: dict[str, int]) -> object:
    """What a node says; `above` is the key that it belongs to."""
    match node:
        case yaml.ScalarNode():
            return node.value if node.style else _plain(node.value)
        case yaml.SequenceNode():
            return [_value(one, f"{above}.", lines) for one in node.value]
        case _:
            return _table(cast("yaml.MappingNode", node), above, lines)


def _table(node: yaml.MappingNode, above: str, lines: dict[str, int]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in node.value:
        key = f"{above}.{name.value}" if above else str(name.value)
        if not isinstance(name, yaml.ScalarNode):
            raise NotPlain("a key must be a word", _line(name))
        if name.value in found:
            raise NotPlain(f"`{key}` is there twice, first in line {lines[key]}. Keep one of them", _line(name))
        lines[key] = _line(name)
        found[name.value] = _value(value, key, lines)
    return found


def _plain(text: str) -> object:
    if text in WORDS:
        return WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    number = float(text) if _FLOAT.fullmatch(text) else math.nan
    return number if math.isfinite(number) else text
