"""Tools as a server lists them, and as they are offered to agents. What cannot be is left out, with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from greenroom.adapters.mcp.names import offered_name
from greenroom.adapters.mcp.schemas import Unfit, tidy
from greenroom.adapters.mcp.words import brief, one_line, plain
from greenroom.core.base.records import Data, record

LONGEST: Final = 8_000
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


def offers(server: str, listed: Iterable[Listed]) -> tuple[tuple[Offer, ...], tuple[LeftOut, ...]]:
    """What can be offered, always in the same order, and what cannot."""
    found: dict[str, Offer] = {}
    singles, left = once(listed)
    for one in sorted(singles, key=lambda tool: tool.name):
        try:
            offer = _offer(server, one)
            _refuse_more(found, offer.name)
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


def _refuse_more(found: dict[str, Offer], name: str) -> None:
    if name in found:
        raise Unfit("It has the same name as another one.")
    if len(found) >= MOST:
        raise Unfit(f"There are more than {MOST} tools.")


def _offer(server: str, listed: Listed) -> Offer:
    if not 0 < len(listed.name) <= LONGEST_NAME:
        raise Unfit(f"Its name has {len(listed.name)} characters.")
    try:
        schema = tidy(listed.schema)
    except Unfit as unfit:
        raise Unfit(f"Its schema {unfit}.") from None
    words = brief(plain(listed.description).strip(), LONGEST)
    return Offer(
        name=offered_name(server, listed.name),
        description=words or f"The tool {one_line(listed.name, 80)} of {server}. It is not described.",
        schema=schema,
        listed=listed,
    )
