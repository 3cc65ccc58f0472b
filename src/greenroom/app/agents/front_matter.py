"""Reads a file with front matter: `---`, YAML keys, `---`, then the prompt.

The YAML is plain data with comments. Aliases (a few lines can expand to gigabytes), tags and duplicate keys are
refused. As in YAML 1.2, `no`, `1:30` and `2026-01-01` stay text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

import yaml

from greenroom.abilities.protocols.strict_yaml import CORE_WORDS, dump, resolve_plain_scalar
from greenroom.app.messages import translate
from greenroom.app.settings.home import read_inside
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.base.text import CONTROL_CHARACTERS, remove_control_characters

MAX_NESTING: Final = 50
COLON_ERROR: Final = "mapping values are not allowed"
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class UnsupportedYaml(ValueError):
    """Invalid YAML, or a YAML feature that is not supported. `line` counts from 1."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(why)
        self.line: Final = line


@record
class ParsedKeys:
    """The values of a text and the line of each key. `a.b` is the key `b` in the table `a`."""

    values: Data
    lines: Mapping[str, int]


def parse_yaml_keys(text: str) -> ParsedKeys:
    """Parse the keys of a text. A text with only comments has none."""
    lines: dict[str, int] = {}
    try:
        _refuse_unsupported_yaml(text)
        node = yaml.compose(text, Loader=_LOADER)
        if node is None:
            return ParsedKeys(values={}, lines={})
        if not isinstance(node, yaml.MappingNode):
            raise UnsupportedYaml(translate("yaml.no_keys"), _line_number(node))
        return ParsedKeys(values=cast("Data", _read_node(node, "", lines)), lines=lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = error.problem or error.context or translate("yaml.not_yaml")
        why += translate("yaml.quote_colon") if COLON_ERROR in why else ""
        raise UnsupportedYaml(why, mark.line + 1 if mark else 1) from None
    except yaml.YAMLError as error:
        raise UnsupportedYaml(str(error).partition("\n")[0], 1) from None


def dump_yaml_keys(keys: Mapping[str, object]) -> str:
    """Write keys as YAML, one per line, in their order."""
    return yaml.safe_dump(dict(keys), allow_unicode=True, sort_keys=False)


def dump_yaml_text(text: str) -> str:
    """Return a text as one line of YAML, quoted unless it is a plain word."""
    is_plain_word = re.fullmatch(r"[^\W\d][\w-]*", text) and text not in CORE_WORDS
    return text if is_plain_word else dump(text)


def _refuse_unsupported_yaml(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        line = event.start_mark.line + 1 if event.start_mark else 1
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_NESTING:
            raise UnsupportedYaml(translate("yaml.too_deep"), line)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise UnsupportedYaml(translate("yaml.alias"), line)
        if getattr(event, "tag", None):
            raise UnsupportedYaml(translate("yaml.tag"), line)


def _line_number(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _read_node(node: yaml.Node, parent_key: str, lines: dict[str, int]) -> object:
    """Return the value of a node. `parent_key` is the key that it belongs to."""
    match node:
        case yaml.ScalarNode():
            return node.value if node.style else resolve_plain_scalar(node.value)
        case yaml.SequenceNode():
            return [_read_node(item, f"{parent_key}.", lines) for item in node.value]
        case _:
            return _read_mapping(cast("yaml.MappingNode", node), parent_key, lines)


def _read_mapping(node: yaml.MappingNode, parent_key: str, lines: dict[str, int]) -> dict[str, object]:
    table: dict[str, object] = {}
    for name, value in node.value:
        key = f"{parent_key}.{name.value}" if parent_key else str(name.value)
        if not isinstance(name, yaml.ScalarNode):
            raise UnsupportedYaml(translate("yaml.bad_key"), _line_number(name))
        if name.value in table:
            raise UnsupportedYaml(translate("yaml.defined_twice", key=key, line=lines[key]), _line_number(name))
        lines[key] = _line_number(name)
        table[name.value] = _read_node(value, key, lines)
    return table


MAX_FILE_BYTES: Final = 256 * 1024
FENCE: Final = "---"


class UnusableAgentFile(WorldFault):
    """A file that is not a valid agent, with path, line, problem and fix. `name` is the agent's name, if known."""

    def __init__(self, path: Path, why: str, line: int = 0, name: object = None) -> None:
        super().__init__(
            remove_control_characters(
                translate("agents.fault_in_line", path=path, line=line, why=why) if line else f"{path} {why}"
            )
        )
        self.name: Final = name if isinstance(name, str) else path.stem


@record
class FrontMatterFile:
    """A file in two parts: the lines between the fences and the text below. `digest` is the hash of the whole file."""

    path: Path
    front_lines: tuple[str, ...]
    text: str
    digest: str = ""

    def parse_keys(self) -> ParsedKeys:
        """Parse the keys between the fences, with line numbers of the file."""
        try:
            # The empty line stands for the opening fence.
            return parse_yaml_keys("\n" + "\n".join(self.front_lines))
        except UnsupportedYaml as fault:
            raise UnusableAgentFile(
                self.path, translate("agents.front_matter_unreadable", fault=fault), fault.line
            ) from None


def read_front_matter_file(path: Path, inside: Path | None = None) -> FrontMatterFile:
    """Read a file. With `inside`, refuse a file outside that folder."""
    try:
        content = read_inside(path, inside, MAX_FILE_BYTES)
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except WorldFault as fault:
        raise UnusableAgentFile(path, translate("files.stop", text=fault)) from None
    except UnicodeDecodeError as error:
        raise UnusableAgentFile(path, translate("agents.not_utf8", start=error.start)) from None
    return evolve(split_front_matter(path, text), digest=hashlib.sha256(content).hexdigest())


def split_front_matter(path: Path, text: str) -> FrontMatterFile:
    """Split a file into its two parts."""
    hidden = CONTROL_CHARACTERS.search(text)
    if hidden is not None:
        why = translate("agents.invisible_character", code=ord(hidden[0]))
        raise UnusableAgentFile(path, why, text.count("\n", 0, hidden.start()) + 1)
    first, *lines = text.split("\n")
    if first.rstrip() != FENCE:
        why = translate("agents.no_front_matter")
        raise UnusableAgentFile(path, why)
    end = next((index for index, line in enumerate(lines) if line.rstrip() == FENCE), None)
    if end is None:
        raise UnusableAgentFile(path, translate("agents.front_matter_open"), 1)
    return FrontMatterFile(path=path, front_lines=tuple(lines[:end]), text="\n".join(lines[end + 1 :]).strip())
