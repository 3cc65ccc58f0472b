"""A file of keys and a text: `---`, YAML, `---`, and then the prompt. Reading it, and where in it a key stands.

The YAML is plain data with comments: no aliases (a few lines of them can stand for gigabytes), no tags, no key twice;
and a word is a word: `no`, `1:30` and `2026-01-01` stay text, as in YAML 1.2.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

import yaml

from greenroom.app.settings.home import read_inside
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.base.text import UNSEEN, seen

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
        why = error.problem or error.context or "it is not YAML"
        why += '. Put a text with ": " in it in quotes' if COLON in why else ""
        raise NotPlain(why, mark.line + 1 if mark else 1) from None
    except yaml.YAMLError as error:
        raise NotPlain(str(error).partition("\n")[0], 1) from None


def dump(text: str) -> str:
    """A text as one line of YAML: a word as it is, all else in quotes."""
    if re.fullmatch(r"[^\W\d][\w-]*", text) and text not in WORDS:
        return text
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=math.inf).rstrip("\n")


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


LONGEST: Final = 256 * 1024
FENCE: Final = "---"


class Unusable(WorldFault):
    """A file that no agent can be made of: which, where, what is wrong, what to do. `name` is the agent's, if known."""

    def __init__(self, path: Path, why: str, line: int = 0, name: object = None) -> None:
        super().__init__(seen(f"{path}, line {line}: {why}" if line else f"{path} {why}"))
        self.name: Final = name if isinstance(name, str) else path.stem


@record
class Sheet:
    """A file in two parts. `front` is all between the fences, line by line; `text` what comes below; `digest` is of all
    its bytes."""

    path: Path
    front: tuple[str, ...]
    text: str
    digest: str = ""

    def keys(self) -> Keys:
        """What stands between the fences, with the lines of the file."""
        try:
            # The empty line stands for the fence.
            return read_keys("\n" + "\n".join(self.front))
        except NotPlain as fault:
            raise Unusable(self.path, f"its front matter cannot be read: {fault}.", fault.line) from None


def read_sheet(path: Path, inside: Path | None = None) -> Sheet:
    """The file, if it is one that can be used; with `inside`, only if it does not lead out of that folder."""
    try:
        content = read_inside(path, inside, LONGEST)
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except WorldFault as fault:
        raise Unusable(path, f"{fault}.") from None
    except UnicodeDecodeError as error:
        why = f"is not UTF-8: byte {error.start} cannot be read. Save it as UTF-8."
        raise Unusable(path, why) from None
    return evolve(cut(path, text), digest=hashlib.sha256(content).hexdigest())


def cut(path: Path, text: str) -> Sheet:
    """The two parts."""
    hidden = UNSEEN.search(text)
    if hidden is not None:
        why = f"the character U+{ord(hidden[0]):04X} cannot be seen and does not belong there. Delete it."
        raise Unusable(path, why, text.count("\n", 0, hidden.start()) + 1)
    first, *lines = text.split("\n")
    if first.rstrip() != FENCE:
        why = "has no front matter. Begin it with a line ---, then `description: …`, then a line ---; the prompt below."
        raise Unusable(path, why)
    end = next((place for place, line in enumerate(lines) if line.rstrip() == FENCE), None)
    if end is None:
        raise Unusable(path, "its front matter never ends. Write a line --- below its last key.", 1)
    return Sheet(path=path, front=tuple(lines[:end]), text="\n".join(lines[end + 1 :]).strip())
