"""Clean the texts and schemas of servers before a model reads them: nothing invisible, endless or external."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from greenroom.core.base.errors import translate
from greenroom.core.base.records import Data, encode
from greenroom.core.base.text import remove_control_characters

INVISIBLE_CHARS: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0100-\U000e01ef\ud800-\udfff]"
)
"""Invisible characters, which can hide a second text. Results keep them, because emoji need them; descriptions do not.
"""

CLIPPED_NOTE: Final = "[… {left} characters are left out …]"


def remove_invisible(text: str) -> str:
    """Return the text without invisible characters."""
    return INVISIBLE_CHARS.sub("", remove_control_characters(text))


def is_plain(text: str) -> bool:
    """Return whether the text has no invisible characters."""
    return remove_invisible(text) == text


def clip_middle(text: str, max_chars: int) -> str:
    """Shorten a text to about `max_chars` characters: its start, the number of characters left out, and its end."""
    if len(text) <= max_chars:
        return text
    tail = max_chars // 5
    return f"{text[: max_chars - tail]}\n{CLIPPED_NOTE.format(left=len(text) - max_chars)}\n{text[-tail:]}"


def to_one_line(text: str, max_chars: int = 300) -> str:
    """Return the text on one line, at most `max_chars` characters long."""
    words = " ".join(remove_invisible(text).split())
    return words if len(words) <= max_chars else f"{words[:max_chars]}…"


MAX_SCHEMA_BYTES: Final = 32_000
"""Largest schema in bytes, because each request contains it."""

MAX_DEPTH: Final = 32
MAX_PARTS: Final = 4_000
"""Largest number of parts, with every reference expanded."""

TEXT_KEYS: Final = frozenset({"description", "title", "$comment"})
"""Keys whose values are for readers. All other values are exact and never changed."""

DYNAMIC_REFERENCES: Final = ("$dynamicRef", "$recursiveRef")
PARAMETER_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class UnusableToolError(ValueError):
    """The schema cannot be used. The message continues a sentence that starts with "its schema"."""


def clean_schema(schema: object) -> Data:
    """Return the schema for the model. Raise `UnusableToolError` if it cannot be used."""
    from jsonschema_rs import validator_for

    if not isinstance(schema, Mapping):
        raise UnusableToolError(translate("mcp_tool.schema_no_object"))
    if measure_depth(schema) > MAX_DEPTH:
        raise UnusableToolError(translate("mcp_tool.schema_too_deep", limit=MAX_DEPTH))
    if (size := len(encode(schema))) > MAX_SCHEMA_BYTES:
        raise UnusableToolError(translate("mcp_tool.schema_too_large", size=size, limit=MAX_SCHEMA_BYTES))
    if schema.get("type", "object") != "object":
        raise UnusableToolError(translate("mcp_tool.schema_type"))
    if (parts := _SchemaSizes(schema).count_parts(schema, ())) > MAX_PARTS:
        raise UnusableToolError(translate("mcp_tool.schema_parts", parts=parts, limit=MAX_PARTS))
    cleaned = {"type": "object", **_clean_mapping(schema)}
    properties = cleaned.get("properties", {})
    if not isinstance(properties, Mapping):
        raise UnusableToolError(translate("mcp_tool.schema_properties"))
    for name in properties:  # providers refuse the whole request for one bad name
        if not PARAMETER_NAME.fullmatch(name):
            raise UnusableToolError(translate("mcp_tool.schema_parameter", name=to_one_line(name, 80)))
    try:
        validator_for(dict(cleaned), offline=True)
    except (TypeError, ValueError) as error:
        raise UnusableToolError(translate("mcp_tool.schema_invalid", error=to_one_line(str(error), 200))) from None
    return cleaned


def measure_depth(node: object) -> int:
    """Return the nesting depth. Counting stops shortly above the limit."""
    level, levels = [node], 0
    while level and levels <= MAX_DEPTH + 1:
        levels += 1
        level = [child for parent in level for child in _list_children(parent)]
    return levels - 1


def _list_children(node: object) -> Iterator[object]:
    if isinstance(node, Mapping):
        yield from node.values()
    elif isinstance(node, list | tuple):
        yield from node


class _SchemaSizes:
    """Counts the parts of a schema with every reference expanded: a small schema can expand to a huge one."""

    def __init__(self, root: Data) -> None:
        self._root = root
        self._sizes: dict[str, int] = {}

    def count_parts(self, node: object, inside: tuple[str, ...]) -> int:
        if isinstance(node, Mapping):
            if any(isinstance(node.get(word), str) for word in DYNAMIC_REFERENCES):
                raise UnusableToolError(translate("mcp_tool.schema_dynamic"))
            reference = node.get("$ref")
            referenced = self._count_reference(reference, inside) if isinstance(reference, str) else 0
        else:
            referenced = 0
        return 1 + referenced + sum(self.count_parts(child, inside) for child in _list_children(node))

    def _count_reference(self, reference: str, inside: tuple[str, ...]) -> int:
        if reference in inside or reference == "#":
            raise UnusableToolError(translate("mcp_tool.schema_itself"))
        if not reference.startswith("#/"):
            raise UnusableToolError(translate("mcp_tool.schema_external", reference=to_one_line(reference, 80)))
        if len(inside) > MAX_DEPTH:
            raise UnusableToolError(translate("mcp_tool.schema_chain", limit=MAX_DEPTH))
        if reference not in self._sizes:
            self._sizes[reference] = self.count_parts(self._resolve_reference(reference), (*inside, reference))
        return self._sizes[reference]

    def _resolve_reference(self, reference: str) -> object:
        target: object = self._root
        for step in reference.removeprefix("#/").split("/"):
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or key not in target:
                raise UnusableToolError(translate("mcp_tool.schema_missing", reference=to_one_line(reference, 80)))
            target = target[key]
        return target


def _clean_mapping(node: Data) -> dict[str, object]:
    return {_require_visible(key): _clean_node(value, is_text=key in TEXT_KEYS) for key, value in node.items()}


def _clean_node(node: object, *, is_text: bool = False) -> object:
    if isinstance(node, str):
        return remove_invisible(node) if is_text else _require_visible(node)
    if isinstance(node, Mapping):
        return _clean_mapping(node)
    if isinstance(node, list | tuple):
        return [_clean_node(child) for child in node]
    return node


def _require_visible(text: str) -> str:
    if not is_plain(text):
        raise UnusableToolError(translate("mcp_tool.schema_invisible"))
    return text
