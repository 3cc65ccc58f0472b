"""Pins: the hash of what a server says of its tools, as a person has agreed to it, and what has changed since.

A server can say one thing when it is looked at and another thing later. What differs is not offered until a person has
looked at it again.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from greenroom.adapters.mcp.offers import Listed
from greenroom.adapters.mcp.words import brief, one_line, plain
from greenroom.core.base.records import record

LONGEST: Final = 20_000
"""Characters that are kept of a description or a schema, to show later what has changed."""


@record
class Pin:
    """What was agreed to about one tool: `digest` decides, the rest is there to be compared by a person."""

    digest: str
    description: str
    schema: str
    hints: str = ""


@record
class Change:
    """How a tool differs from what was agreed to; `diff` has the lines that came and went."""

    name: str
    how: Literal["new", "changed", "gone"]
    diff: str = ""


def pin(tools: Iterable[Listed]) -> str:
    """The hash of a whole set of tools: their names, descriptions and schemas, in whatever order they came."""
    each = sorted((one.name, digest(one)) for one in tools)
    return hashlib.sha256(json.dumps(each).encode()).hexdigest()


def digest(tool: Listed) -> str:
    """The hash of one tool, of exactly what its server said."""
    said = [tool.name, tool.description, tool.schema, tool.read_only, tool.destructive]
    told = json.dumps(said, sort_keys=True, default=dict)
    return hashlib.sha256(told.encode()).hexdigest()


def pins(tools: Iterable[Listed]) -> dict[str, Pin]:
    """What to keep when a person agrees to these tools."""
    return {one.name: _pinned(one) for one in tools}


def changed(agreed: Mapping[str, Pin], tools: Iterable[Listed]) -> tuple[Change, ...]:
    """What differs from what was agreed to, by name; nothing if all is as it was."""
    now = {one.name: one for one in tools}
    found = [_change(agreed.get(name), one) for name, one in sorted(now.items())]
    gone = [Change(name=one_line(name, 80), how="gone") for name in sorted(agreed.keys() - now.keys())]
    return (*(one for one in found if one is not None), *gone)


def _change(before: Pin | None, now: Listed) -> Change | None:
    if before is None:
        return Change(name=one_line(now.name, 80), how="new", diff=_diff("", _described(now)))
    if before.digest == digest(now):
        return None
    told = "".join(
        _diff(old, new)
        for old, new in (
            (before.description, _described(now)),
            (before.schema, _schema(now)),
            (before.hints, _hints(now)),
        )
    )
    unseen = "only what nobody sees in it has changed\n"
    return Change(name=one_line(now.name, 80), how="changed", diff=told or unseen)


def _pinned(tool: Listed) -> Pin:
    return Pin(digest=digest(tool), description=_described(tool), schema=_schema(tool), hints=_hints(tool))


def _hints(tool: Listed) -> str:
    """What its server says about its effects, a line each."""
    said = (("changes nothing", tool.read_only), ("destroys", tool.destructive))
    return "".join(f"it says: {what}: {'yes' if word else 'no'}\n" for what, word in said if word is not None)


def _described(tool: Listed) -> str:
    return brief(plain(tool.description), LONGEST)


def _schema(tool: Listed) -> str:
    return brief(plain(json.dumps(tool.schema, indent=1, sort_keys=True, default=dict)), LONGEST)


def _diff(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    return "".join(f"{line}\n" for line in lines if not line.startswith(("---", "+++", "@@")))
