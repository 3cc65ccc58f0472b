"""What a server offers now, held against what a person has agreed to."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from greenroom.adapters.mcp.configuration import Server
from greenroom.adapters.mcp.link import Listing
from greenroom.adapters.mcp.offers import LeftOut, Listed, Offer, offers, once
from greenroom.adapters.mcp.pins import Change, Pin, changed, digest
from greenroom.core.base.records import record


@record
class Catalogue:
    """What agents are offered, by name; what was left out, and why; what a person has to look at first."""

    offered: Mapping[str, Offer] = msgspec.field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    changes: tuple[Change, ...] = ()
    listed: tuple[Listed, ...] = ()


def compared(server: Server, listing: Listing, agreed: Mapping[str, Pin] | None) -> Catalogue:
    """The catalogue of a server that lists this. Where nothing was agreed to (None) everything is offered."""
    found, left = offers(server.name, listing.listed)
    singles, _ = once(listing.listed)
    kept = [one for one in found if agreed is None or _is_agreed(one.listed, agreed)]
    return Catalogue(
        offered={one.name: one for one in kept},
        left_out=(*listing.left_out, *left),
        changes=() if agreed is None else changed(agreed, singles),
        listed=singles,
    )


def _is_agreed(listed: Listed, agreed: Mapping[str, Pin]) -> bool:
    pin = agreed.get(listed.name)
    return pin is not None and pin.digest == digest(listed)
