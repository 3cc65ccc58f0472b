"""The arguments of a tool, declared once: what a model is told of them, and how a call's are read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

import msgspec

from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.state.step import Step

T = TypeVar("T")


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a call. A field says by `msgspec.Meta` what it is for and what it may be."""


def schema_of(kind: type[Arguments], **descriptions: str) -> Data:
    """The JSON Schema of these arguments; `descriptions` are those that are known only when the tool is made."""
    _, parts = msgspec.json.schema_components((kind,), ref_template="{name}")
    return _plain(parts[kind.__name__], parts, descriptions)


def _plain(value: object, parts: Mapping[str, object], descriptions: Mapping[str, str]) -> dict[str, object]:
    """A schema without references, titles, defaults, and without the null of what may be left out."""
    schema = dict(cast("Mapping[str, object]", value))
    if "$ref" in schema:
        return _plain(parts[str(schema["$ref"])], parts, descriptions)
    if "anyOf" in schema:
        schema = {**cast("list[Data]", schema.pop("anyOf"))[0], **schema}
    if "properties" in schema:
        schema.pop("description", None)  # the docstring of the record
        fields = {
            name: _plain(field, parts, descriptions) for name, field in cast("Data", schema["properties"]).items()
        }
        for name in fields.keys() & descriptions.keys():
            fields[name]["description"] = descriptions[name]
        schema["properties"] = fields
    if "items" in schema:
        schema["items"] = _plain(schema["items"], parts, descriptions)
    return {key: found for key, found in schema.items() if key not in ("title", "default") and found != []}


def given(kind: type[T], step: Step) -> T:
    """The arguments of this step; `ModelFault` says which one does not fit, and why."""
    return fitted(kind, step.work.instruction_content or {}, step.work.executor)


def fitted(kind: type[T], arguments: Data, name: str) -> T:
    """The arguments of a call of this tool. A number that came as text is a number, and null is left out."""
    try:
        return msgspec.convert(_said(arguments), kind, strict=False)
    except msgspec.ValidationError as misfit:
        raise ModelFault(f"{name} was not called: {misfit}. Look at its parameters and call it again.") from None


def _said(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _said(item) for name, item in value.items() if item is not None}
    return [_said(item) for item in value] if isinstance(value, list | tuple) else value
