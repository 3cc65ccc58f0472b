"""Shapes: a type of Python as a JSON Schema, and JSON data as a value of that type.

msgspec knows dataclasses, TypedDicts, enums, literals, unions, dates and all that is made of them; a pydantic model
knows itself, so pydantic need not be there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, Final, cast

import msgspec

from greenroom.core.base.errors import GreenroomError, WorldFault
from greenroom.core.base.records import Data

DEEPEST: Final = 16
"""How deep a schema is written out; what goes deeper refers to itself."""


class Misfit(GreenroomError):
    """Data that is not of the shape; says what and where."""


class Shape:
    """`schema` tells a model what to write; `read` makes a value of it, `Misfit` if it is none."""

    def __init__(self, kind: object, schema: Data, read: Callable[[object], object]) -> None:
        self.kind = kind
        self.schema = schema
        self._read = read

    def read(self, data: object) -> object:
        """The value."""
        try:
            return self._read(data)
        except (ValueError, TypeError) as error:  # of msgspec and pydantic alike
            raise Misfit(_said(error)) from error


def shape_of(kind: object) -> Shape:
    """The shape of a type; `WorldFault` when JSON has none for it."""
    model = getattr(kind, "model_json_schema", None)
    if model is not None and isinstance(kind, type):
        return Shape(kind, written_out(model()), cast("Any", kind).model_validate)
    try:
        schema = msgspec.json.schema(kind, schema_hook=_schema_of)
    except (TypeError, RecursionError) as error:
        raise WorldFault(f"{_name(kind)} cannot be told to a model: {_first_line(error)}") from None
    known = cast("type[object]", kind)
    return Shape(kind, written_out(schema), lambda data: msgspec.convert(data, known, dec_hook=_value_of))


def _schema_of(kind: type) -> dict[str, Any]:
    """Of what msgspec does not know: pydantic's models, and paths."""
    model = getattr(kind, "model_json_schema", None)
    if model is not None:
        return dict(written_out(model()))
    if issubclass(kind, PurePath):
        return {"type": "string", "description": "a path"}
    raise TypeError(f"a {kind.__qualname__} has no form in JSON. Take text, numbers, lists, dataclasses or enums")


def _value_of(kind: type, data: object) -> object:
    validate = getattr(kind, "model_validate", None)
    return validate(data) if validate is not None else kind(data)


def plain(value: object) -> object:
    """A value as JSON data."""
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return dump(mode="json")
    return msgspec.to_builtins(value)


def as_text(value: object) -> str:
    """A value as a model reads it: text as it is, all else as JSON; nothing is said as such."""
    if isinstance(value, str):
        return value
    if value is None:
        return "Done."
    try:
        return msgspec.json.encode(plain(value)).decode()
    except (TypeError, ValueError, RecursionError):
        return str(value)


def written_out(schema: Mapping[str, object]) -> Data:
    """The schema without references where it can be: many endpoints do not follow them."""
    named = schema.get("$defs")
    parts = cast("Mapping[str, object]", named) if isinstance(named, dict) else {}
    bare = {name: value for name, value in schema.items() if name != "$defs"}
    used: set[str] = set()
    found = cast("dict[str, object]", _inlined(bare, parts, (), used))
    found.pop("title", None)
    return {**found, "$defs": {name: parts[name] for name in sorted(_reached(used, parts))}} if used else found


def _inlined(node: object, parts: Mapping[str, object], path: tuple[str, ...], used: set[str]) -> object:
    if isinstance(node, list):
        return [_inlined(one, parts, path, used) for one in node]
    if not isinstance(node, dict):
        return node
    target = str(node.get("$ref", "")).removeprefix("#/$defs/")
    if target in parts:
        if target in path or len(path) > DEEPEST:
            used.add(target)
            return node
        rest = {name: value for name, value in node.items() if name != "$ref"}
        inner = _inlined(parts[target], parts, (*path, target), used)
        return {**cast("dict[str, object]", inner), **rest}
    return {name: _inlined(value, parts, path, used) for name, value in node.items()}


def _reached(used: set[str], parts: Mapping[str, object]) -> set[str]:
    """All parts that these refer to."""
    found, todo = set[str](), list(used)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += _references(parts[name])
    return found


def _references(node: object) -> list[str]:
    if isinstance(node, list):
        return [name for one in node for name in _references(one)]
    if not isinstance(node, dict):
        return []
    own = [str(node["$ref"]).removeprefix("#/$defs/")] if "$ref" in node else []
    return own + [name for value in node.values() for name in _references(value)]


def _name(kind: object) -> str:
    return str(getattr(kind, "__qualname__", kind))


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _said(error: Exception) -> str:
    """msgspec says it in one line; pydantic in many, of which the details matter."""
    details = getattr(error, "errors", None)
    if details is None:
        return str(error)
    found = [f"{one['msg']} - at `{'.'.join(map(str, one['loc']))}`" for one in details()]
    return "; ".join(found[:5])
