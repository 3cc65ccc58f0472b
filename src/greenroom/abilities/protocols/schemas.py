"""A tool's schema: whether arguments fit it, and what a text means where it wants a number, a truth or a list."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from greenroom.abilities.protocols.jsons import Unreadable, decode
from greenroom.core.base.records import Data, written

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

MOST_FAULTS: Final = 5
LONG: Final = 20_000
LONGEST: Final = 300
"""Characters of one fault: a message that quotes a whole file helps nobody."""

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,300}")
_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


class BadSchema(ValueError):
    """The tool's own schema is none: not the model's fault."""


def faults(schema: Data, arguments: Data) -> list[str]:
    """What does not fit, one sentence each; `BadSchema` if nobody can tell."""
    return checker(schema)(arguments)


def checker(schema: Data) -> Callable[[Data], list[str]]:
    """What says of arguments what does not fit, for a schema that is used again and again; `BadSchema` for none."""
    from jsonschema_rs import ValidationError, validator_for

    try:
        validator = validator_for(dict(schema), offline=True)
    except (TypeError, ValueError) as error:
        raise BadSchema(brief(str(error))) from None

    def check(arguments: Data) -> list[str]:
        given = dict(arguments)
        try:
            # All faults are found before the first one is told: of a long list that would be a million.
            if written(given) > LONG:
                validator.validate(given)
        except ValidationError as error:
            return [_fault(error)]
        return [_fault(error) for error in islice(validator.iter_errors(given), MOST_FAULTS)]

    return check


def _fault(error: ValidationError) -> str:
    return f"{'.'.join(map(str, error.instance_path)) or 'arguments'}: {brief(error.message)}"


def strangers(schema: Data, arguments: Data) -> list[str]:
    """Arguments that the schema does not name."""
    return sorted(arguments.keys() - _properties(schema).keys())


def converted(schema: Data, arguments: Data) -> dict[str, object]:
    """Arguments that came as text, as what the schema wants; `Unreadable` names the first that cannot be that."""
    properties = _properties(schema)
    return {
        name: _converted(name, value, _types(properties.get(name), schema)) if isinstance(value, str) else value
        for name, value in arguments.items()
    }


def _converted(name: str, text: str, wanted: set[str]) -> object:
    if not wanted or "string" in wanted:
        return text
    word = text.strip()
    if "null" in wanted and word == "null":
        return None
    if "boolean" in wanted and word.lower() in ("true", "false"):
        return word.lower() == "true"
    if "integer" in wanted and _INTEGER.fullmatch(word):
        return int(word)
    return _decoded(name, word, wanted - {"null"})


def _decoded(name: str, word: str, wanted: set[str]) -> object:
    try:
        value = decode(word)
    except Unreadable as error:
        raise Unreadable(f"{name}: {brief(repr(word))} is not {_named(wanted)} in JSON ({error})") from None
    kind = _TYPES.get(type(value), "null")
    if kind in wanted or (kind == "integer" and "number" in wanted):
        return value
    raise Unreadable(f"{name}: {brief(repr(word))} is not {_named(wanted)}")


def _named(wanted: set[str]) -> str:
    return " or ".join(f"{'an' if kind[0] in 'aio' else 'a'} {kind}" for kind in sorted(wanted))


def _properties(schema: Data) -> Mapping[str, object]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _types(part: object, root: Data) -> set[str]:
    """All types that this part of a schema allows."""
    found: set[str] = set()
    waiting, seen = [part], set[str]()
    while waiting:
        one = waiting.pop()
        if not isinstance(one, Mapping):
            continue
        found.update(_own_types(one))
        waiting.extend(choice for keyword in ("anyOf", "oneOf", "allOf") for choice in _listed(one, keyword))
        reference = one.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            seen.add(reference)
            waiting.append(_target(reference, root))
    return found


def _own_types(part: Mapping[str, object]) -> Iterator[str]:
    declared = part.get("type")
    yield from [declared] if isinstance(declared, str) else map(str, _listed(part, "type"))
    constant = [part["const"]] if "const" in part else []
    yield from (_TYPES.get(type(value), "null") for value in (*_listed(part, "enum"), *constant))


def _listed(part: Mapping[str, object], keyword: str) -> list[object]:
    found = part.get(keyword)
    return found if isinstance(found, list) else []


def _target(reference: str, root: Data) -> object:
    """What a reference inside the schema points at."""
    found: object = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def brief(text: str, most: int = LONGEST) -> str:
    """The beginning of a text that is too long."""
    return text if len(text) <= most else text[:most] + "…"


def shown(data: object) -> str:
    """Arguments as readable JSON."""
    return json.dumps(data, ensure_ascii=False, indent=2)
