"""Settings as a table: key, value, where it comes from. Secrets are masked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from greenroom.adapters.mcp.configuration import Server, masked
from greenroom.app.settings.layers import Loaded, Origin
from greenroom.app.settings.reading import Key, dotted
from greenroom.core.base.records import record


@record
class Row:
    """One setting."""

    key: str
    value: str
    origin: Origin


def rows(loaded: Loaded) -> Sequence[Row]:
    """All settings, also those that nobody has set; of providers, groups, prices and servers what somebody has."""
    return tuple(
        Row(key=dotted(key), value=shown(key, value), origin=loaded.origin(".".join(key)))
        for key, value in flat(loaded.settings, ())
    )


def flat(value: object, key: Key) -> Iterator[tuple[Key, object]]:
    """All single values below a record."""
    if isinstance(value, Server):
        yield key, value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from flat(getattr(value, name), (*key, name))
    elif isinstance(value, Mapping) and key[-1] != "headers":
        for name, one in value.items():
            yield from flat(one, (*key, name))
    else:
        yield key, value


def shown(key: Key, value: object) -> str:
    """A value for people. A header may well be a key."""
    match value:
        case Server():
            return masked(value)
        case None:
            return "none" if key[0] == "limits" else ""
        case Mapping():
            return ", ".join(f"{name}: ****" for name in value)
        case tuple():
            return ", ".join(map(str, value))
        case float():
            return f"{value:g}"
        case _:
            return str(value)
