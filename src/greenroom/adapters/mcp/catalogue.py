"""The tools of a server: as it lists them, as agents are offered them, and as a person has agreed to them (pins).

What cannot be offered is left out, with the reason. A tool that is not what was agreed to is not offered.

Agents call it `mcp__SERVER__TOOL`, in letters that every provider takes. A name that had to be changed ends with a hash
of the whole one: the same tool always gets the same name, and none can take the name of another server's tool, because
the first part has no `__` in it.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from greenroom.adapters.mcp.configuration import Server
from greenroom.adapters.mcp.schemas import Unfit, brief, one_line, plain, tidy
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, record

PREFIX: Final = "mcp__"
NAME_ROOM: Final = 64
FOR_SERVER: Final = 24
HASH_LENGTH: Final = 6

_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_RUN: Final = re.compile(r"__+")


def offered_name(server: str, tool: str) -> str:
    """What an agent calls this tool by."""
    front = f"{PREFIX}{_fit(server, _RUN.sub('_', _OTHER.sub('_', server)).strip('_'), FOR_SERVER)}__"
    return front + _fit(tool, _OTHER.sub("_", tool), NAME_ROOM - len(front))


def _fit(raw: str, clean: str, room: int) -> str:
    if clean == raw and 0 < len(raw) <= room:
        return raw
    mark = hashlib.sha256(raw.encode(errors="surrogatepass")).hexdigest()[:HASH_LENGTH]
    return f"{clean[: room - HASH_LENGTH - 1].rstrip('_')}_{mark}".lstrip("_")


LONGEST_DESCRIPTION: Final = 8_000
"""Characters of a description. A longer one is cut: what is not shown to the model cannot talk it into anything."""

LONGEST_NAME: Final = 256
MOST: Final = 1_000
"""Tools of one server."""


@record
class Listed:
    """One tool as its server describes it: a stranger's words, exactly as they came."""

    name: str
    description: str
    schema: Data
    read_only: bool | None = None
    destructive: bool | None = None

    @property
    def admits_effects(self) -> bool:
        """Whether the server itself says that it changes something. That it changes nothing is not believed."""
        return self.read_only is False or self.destructive is True


@record
class Offer:
    """One tool as an agent is told of it: `name` is ours, `listed` what its server said."""

    name: str
    description: str
    schema: Data
    listed: Listed


@record
class LeftOut:
    """A tool that is not offered, and why not, in a sentence."""

    name: str
    why: str


class CallLost(WorldFault):
    """A call went out and no answer came back: nobody knows whether it was done."""


@record
class Part:
    """An image, a recording or a file that came with an answer: kept, but told of in words only."""

    media_type: str
    bytes: int
    data: str = ""


@record
class Answer:
    """What a call came to. `failed` is the server's own word that it did not work."""

    text: str
    failed: bool = False
    parts: tuple[Part, ...] = ()


def offers(server: str, listed: Iterable[Listed]) -> tuple[tuple[Offer, ...], tuple[LeftOut, ...]]:
    """What can be offered, always in the same order, and what cannot."""
    found: dict[str, Offer] = {}
    singles, left = once(listed)
    for one in sorted(singles, key=lambda tool: tool.name):
        try:
            offer = _offer(server, one)
            if offer.name in found:
                raise Unfit("It has the same name as another one.")
            if len(found) >= MOST:
                raise Unfit(f"There are more than {MOST} tools.")
        except Unfit as unfit:
            left.append(LeftOut(name=one_line(one.name, 80), why=str(unfit)))
        else:
            found[offer.name] = offer
    return tuple(found.values()), tuple(left)


def once(listed: Iterable[Listed]) -> tuple[tuple[Listed, ...], list[LeftOut]]:
    """Those whose name no other has. Of several with one name nobody knows which one a call would reach."""
    every = tuple(listed)
    counted = Counter(one.name for one in every)
    doubles = sorted(name for name, count in counted.items() if count > 1)
    left = [LeftOut(name=one_line(name, 80), why="It has the same name as another one.") for name in doubles]
    return tuple(one for one in every if counted[one.name] == 1), left


def _offer(server: str, listed: Listed) -> Offer:
    if not 0 < len(listed.name) <= LONGEST_NAME:
        raise Unfit(f"Its name has {len(listed.name)} characters.")
    try:
        schema = tidy(listed.schema)
    except Unfit as unfit:
        raise Unfit(f"Its schema {unfit}.") from None
    words = brief(plain(listed.description).strip(), LONGEST_DESCRIPTION)
    return Offer(
        name=offered_name(server, listed.name),
        description=words or f"The tool {one_line(listed.name, 80)} of {server}. It is not described.",
        schema=schema,
        listed=listed,
    )


LONGEST_CHANGE: Final = 20_000
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


def digest(tool: Listed) -> str:
    """The hash of one tool, of exactly what its server said."""
    said = [tool.name, tool.description, tool.schema, tool.read_only, tool.destructive]
    told = json.dumps(said, sort_keys=True, default=dict)
    return hashlib.sha256(told.encode()).hexdigest()


def pins(tools: Iterable[Listed]) -> dict[str, Pin]:
    """What to keep when a person agrees to these tools."""
    return {
        one.name: Pin(digest=digest(one), description=_described(one), schema=_schema(one), hints=_hints(one))
        for one in tools
    }


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


def _hints(tool: Listed) -> str:
    """What its server says about its effects, a line each."""
    said = (("changes nothing", tool.read_only), ("destroys", tool.destructive))
    return "".join(f"it says: {what}: {'yes' if word else 'no'}\n" for what, word in said if word is not None)


def _described(tool: Listed) -> str:
    return brief(plain(tool.description), LONGEST_CHANGE)


def _schema(tool: Listed) -> str:
    return brief(plain(json.dumps(tool.schema, indent=1, sort_keys=True, default=dict)), LONGEST_CHANGE)


def _diff(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    return "".join(f"{line}\n" for line in lines if not line.startswith(("---", "+++", "@@")))


@record
class Catalogue:
    """What agents are offered, by name; what was left out, and why; what a person has to look at first."""

    offered: Mapping[str, Offer] = msgspec.field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    changes: tuple[Change, ...] = ()
    listed: tuple[Listed, ...] = ()


def compared(
    server: Server, listed: Sequence[Listed], left_out: Sequence[LeftOut], agreed: Mapping[str, Pin] | None
) -> Catalogue:
    """The catalogue of a server that lists this. Where nothing was agreed to (None) everything is offered."""
    found, left = offers(server.name, listed)
    singles, _ = once(listed)
    kept = [
        offer
        for offer in found
        if agreed is None or (offer.listed.name in agreed and agreed[offer.listed.name].digest == digest(offer.listed))
    ]
    return Catalogue(
        offered={offer.name: offer for offer in kept},
        left_out=(*left_out, *left),
        changes=() if agreed is None else changed(agreed, singles),
        listed=singles,
    )
