"""The recorded request that is nearest to one that was not recorded, as a difference that a person can read."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from greenroom.core.base.records import Data, encode

LOOKED_AT: Final = 1000
"""So many candidates are looked at, by how many lines they share with the request …"""

COMPARED: Final = 8
"""… and so many are compared line by line: difflib is thorough, not fast."""

LINES: Final = 800
CHARACTERS: Final = 600
SHOWN: Final = 120
WIDTH: Final = 400
CONTEXT: Final = 2


def nearest(wanted: Data, recorded: Sequence[Data]) -> str:
    """A unified diff from the nearest of the recorded requests to the wanted one; "" when there is none."""
    lines = shown(wanted)
    # The same number of messages first: a conversation that is as long is the same turn of it.
    by_length = sorted(recorded, key=lambda one: abs(length(one) - length(wanted)))[:LOOKED_AT]
    if not by_length:
        return ""
    least = abs(length(by_length[0]) - length(wanted))
    as_long = [shown(one) for one in by_length if abs(length(one) - length(wanted)) == least]
    likely = sorted(as_long, key=lambda one: shared(lines, one), reverse=True)[:COMPARED]
    best = max(likely, key=lambda one: likeness(lines, one))
    theirs, mine, _ = apart(best, lines, around=CONTEXT)
    diff = difflib.unified_diff(theirs, mine, "recorded", "asked", lineterm="", n=CONTEXT)
    return "\n".join(short(line) for line in islice(diff, SHOWN))


def length(request: Data) -> int:
    """How many messages it has."""
    return len(_list(request.get("messages")))


def shared(one: Sequence[str], other: Sequence[str]) -> tuple[float, float]:
    """A cheap likeness: the lines that they have in common, and then the letters of the others, in any order."""
    mine, theirs = set(one), set(other)
    by_lines = len(mine & theirs) / len(mine | theirs)
    return by_lines, matcher(*apart(one, other)[:2]).quick_ratio()


def likeness(one: Sequence[str], other: Sequence[str]) -> tuple[float, float]:
    """How alike they are by lines, and then by the characters of those lines that differ."""
    mine, theirs, equal = apart(one, other)
    matches = difflib.SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks()
    by_lines = 2 * (equal + sum(block.size for block in matches)) / (len(one) + len(other))
    return by_lines, matcher(mine, theirs).ratio()


def matcher(one: Sequence[str], other: Sequence[str]) -> difflib.SequenceMatcher[str]:
    """Compares their beginnings letter by letter."""
    mine, theirs = ("\n".join(lines)[:CHARACTERS] for lines in (one, other))
    return difflib.SequenceMatcher(None, mine, theirs, autojunk=False)


def apart(one: Sequence[str], other: Sequence[str], around: int = 0) -> tuple[Sequence[str], Sequence[str], int]:
    """Where they differ, and how many lines they begin and end with alike: long talks differ in little."""
    shorter = min(len(one), len(other))
    start = next((n for n in range(shorter) if one[n] != other[n]), shorter)
    end = next((n for n in range(shorter - start) if one[-1 - n] != other[-1 - n]), shorter - start)
    low, high = max(start - around, 0), max(end - around, 0)
    mine, theirs = (lines[low : len(lines) - high][:LINES] for lines in (one, other))
    return mine, theirs, start + end


def shown(request: Data) -> list[str]:
    """A canonical request as lines: the text of a message has its own."""
    lines = [f"model: {request.get('model')}"]
    lines.extend(f"{name}: {_json(request[name])}" for name in ("settings", "schema") if name in request)
    lines.extend(f"tool: {_json(tool)}" for tool in _list(request.get("tools")))
    for message in _list(request.get("messages")):
        lines.extend(_message(message))
    return lines


def _message(message: object) -> Iterator[str]:
    if not isinstance(message, Mapping):
        yield _json(message)
        return
    yield f"{message.get('role')}:"
    for name, value in message.items():
        if isinstance(value, str) and name != "role":
            mark = "" if name == "content" else f"{name}: "
            yield from (f"  {mark}{line}" for line in value.split("\n"))
        elif name != "role":
            yield f"  {name}: {_json(value)}"


def short(line: str) -> str:
    """The line, if it is not too long for a screen."""
    return line if len(line) <= WIDTH else f"{line[:WIDTH]} … ({len(line)} characters)"


def _json(value: object) -> str:
    return encode(value).decode()


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
