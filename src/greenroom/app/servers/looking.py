"""Looking at a server: it is started, says what it has, and is ended again, all within a time."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from greenroom.adapters.mcp.catalogue import Catalogue
from greenroom.adapters.mcp.client import McpClient, Patience, Surroundings
from greenroom.app.servers.here import Found, servers_in, surroundings
from greenroom.app.servers.listings import Known, Listings, own_listings
from greenroom.app.settings.schema import Settings
from greenroom.app.trust.ledger import Trusted
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

BY_HAND: Final = Patience(start=60.0)
"""A person waits for it, and sees that it takes its time: the first start may have to fetch the program."""

BEFORE_A_RUN: Final = Patience(start=15.0)


@record
class Seen:
    """What a server is and has: the version that it speaks, its tools, and what differs from what was known."""

    version: str
    catalogue: Catalogue


async def look(found: Found, around: Surroundings, known: Known | None = None, *, patience: Patience = BY_HAND) -> Seen:
    """Look at it once; `WorldFault` says why it does not work. Nothing is kept, and nothing of it is left running."""
    agreed = known.agreed if known is not None else None
    client = McpClient(found.server, around, agreed=agreed, patience=patience)
    try:
        health = await client.check()
        if not health.works:
            raise WorldFault(health.why)
        return Seen(version=health.version, catalogue=await client.catalogue())
    finally:
        await client.close()


async def meet(
    root: Path,
    environ: Mapping[str, str],
    settings: Settings,
    trusted: Trusted,
    *,
    patience: Patience = BEFORE_A_RUN,
) -> tuple[str, ...]:
    """Before a run: look at all servers that may be started and that nobody has looked at, and keep what they have.

    Returns a sentence for each that does not work, or has other tools than it had under other settings.
    """
    listings = own_listings()
    enabled = [one for one in servers_in(root, settings).found if one.server.enabled]
    new = [one for one in enabled if (one.own or trusted(one.brought)) and listings.of(one) is None]
    around = [surroundings(one, root, environ, settings) for one in new]
    said = await asyncio.gather(*(_met(one, place, listings, patience) for one, place in zip(new, around, strict=True)))
    return tuple(one for one in said if one)


async def _met(found: Found, around: Surroundings, listings: Listings, patience: Patience) -> str:
    try:
        known = listings.latest(found)
        seen = await look(found, around, known, patience=patience)
        if seen.catalogue.changes:
            return told_changes(found.server.name, seen.catalogue)
        listings.keep(found, seen.catalogue.listed)
    except WorldFault as fault:
        return str(fault)
    return ""


def told_changes(name: str, catalogue: Catalogue) -> str:
    """That a server is not what a person has agreed to."""
    what = ", ".join(f"{one.name} ({one.how})" for one in catalogue.changes[:SHOWN])
    more = len(catalogue.changes) - SHOWN
    rest = f" and {more} more" if more > 0 else ""
    return (
        f"The MCP server {name!r} has other tools than you agreed to: {what}{rest}. They are not used before you look "
        f"at them: greenroom mcp check {shlex.quote(name)}"
    )


SHOWN: Final = 5
"""How many tools a sentence lists."""
