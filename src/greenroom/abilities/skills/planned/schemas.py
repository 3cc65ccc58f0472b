"""JSON Schemas of answers: as a model is asked with them, and as an answer is held against them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from greenroom.abilities.skills.planned.skill import Moment
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data

NULL: Final[Data] = {"type": "null"}
MEMORY: Final[Data] = {"type": "string"}

_KNOWN: Final = frozenset(
    {
        "type",
        "properties",
        "required",
        "items",
        "enum",
        "const",
        "anyOf",
        "description",
        "title",
        "additionalProperties",
    }
)
"""Keywords that every provider takes in a strict schema."""


def strict(schema: Data) -> Data | None:
    """The same schema as strict output wants it: every field is there, and no other. None if it cannot be said so.

    What may be missing may then be null: see `without_nulls`.
    """
    if not _KNOWN.issuperset(schema):
        return None
    if "anyOf" in schema:
        choices = [strict(one) for one in _maps(schema["anyOf"])]
        return None if None in choices else {**schema, "anyOf": choices}
    if schema.get("type") == "array":
        items = schema.get("items")
        inner = strict(cast("Data", items)) if isinstance(items, Mapping) else None
        return None if inner is None else {**schema, "items": inner}
    return _closed(schema) if schema.get("type") == "object" else schema


def _closed(schema: Data) -> Data | None:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties or schema.get("additionalProperties", False) is not False:
        return None
    required = _names(schema)
    found: dict[str, Data] = {}
    for name, one in properties.items():
        inner = strict(one) if isinstance(one, Mapping) else None
        if inner is None:
            return None
        found[name] = inner if name in required else {"anyOf": [inner, NULL]}
    return {**schema, "properties": found, "required": list(found), "additionalProperties": False}


def enclosed(schema: Data) -> Data:
    """What a structured reply is: the answer, and what is to be kept for good."""
    fields = {"answer": schema, "persistent_memory": MEMORY}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def without_nulls(value: object) -> object:
    """The value without fields that are null: a strict schema has no other way to leave one out."""
    if isinstance(value, Mapping):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def check(moment: Moment, schema: Data, value: object) -> None:
    """`ModelFault` says where an answer does not fit. Of several forms it is held against the one that it names."""
    misfit = moment.reader.misfit(_form(schema, value), value)
    if misfit:
        raise ModelFault(f"Your answer does not fit: {misfit}.")


def _form(schema: Data, value: object) -> Data:
    if "anyOf" not in schema:
        return schema
    forms = {name: one for one in _maps(schema["anyOf"]) for name in _actions(one)}
    action = value.get("action") if isinstance(value, Mapping) else None
    if action not in forms:
        raise ModelFault(f"There is no action {action!r}. Choose one: {', '.join(forms)}.")
    return forms[str(action)]


def _actions(schema: Data) -> list[str]:
    properties = cast("Mapping[str, Data]", schema.get("properties", {}))
    return list(map(str, cast("Sequence[object]", properties.get("action", {}).get("enum", ()))))


def _names(schema: Data) -> tuple[str, ...]:
    return tuple(map(str, cast("Sequence[object]", schema.get("required", ()))))


def _maps(value: object) -> list[Data]:
    return [cast("Data", one) for one in cast("Sequence[object]", value) if isinstance(one, Mapping)]


def form(action: str, **fields: Data) -> Data:
    """One form of an answer that has several: its action and its fields, all of which are wanted."""
    return fields_of(action={"type": "string", "enum": [action]}, **fields)


def fields_of(**fields: Data) -> Data:
    """An object with these fields, all of which are wanted."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def list_of(item: Data) -> Data:
    """A list of such."""
    return {"type": "array", "items": item}


def one_of(*words: str) -> Data:
    """One of these words."""
    return {"type": "string", "enum": list(words)}
