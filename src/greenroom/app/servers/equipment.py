"""The tools of MCP servers for a workspace. They are known from what a person has seen; a server starts at a call."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from greenroom.adapters.mcp.catalogue import Catalogue
from greenroom.adapters.mcp.client import PATIENCE, McpClient, Patience, Switchboard
from greenroom.adapters.mcp.tool import McpTool, stored_kit
from greenroom.app.hands.equipment import Equipment
from greenroom.app.servers.here import Found, servers_in, surroundings
from greenroom.app.servers.listings import Known, Listings, own_listings
from greenroom.app.servers.looking import told_changes
from greenroom.app.settings.schema import Settings
from greenroom.app.trust.ledger import Trusted
from greenroom.core.base.errors import WorldFault

Tell: TypeAlias = Callable[[str], None]


def equipment_of(
    root: Path,
    environ: Mapping[str, str],
    settings: Settings,
    trusted: Trusted,
    *,
    tell: Tell | None = None,
    patience: Patience = PATIENCE,
) -> Equipment:
    """The tools of all servers that may be used here, and a note for each that may not. Nothing is started.

    `tell` hears, in the middle of a run, that a server has other tools than the person agreed to.
    """
    here = servers_in(root, settings)
    listings = own_listings()
    clients: list[McpClient] = []
    tools: list[McpTool] = []
    notes = list(here.faults)
    agreed = [one for one in here.found if one.own or trusted(one.brought)]
    for found in agreed:
        known = _usable(found, listings)
        if isinstance(known, str):
            notes += [known] if known else []
            continue
        around = surroundings(found, root, environ, settings)
        watch = _Watch(found.server.name, tell or _logged)
        client = McpClient(found.server, around, agreed=known.agreed, patience=patience, looked=watch)
        clients.append(client)
        tools += stored_kit(client, known.listed)
    waiting = tuple(_waits(one) for one in here.found if one not in agreed and one.server.enabled)
    return Equipment(tools=tuple(tools), notes=tuple(notes), unagreed=waiting, closing=(Switchboard(clients).close,))


def _waits(found: Found) -> str:
    name = found.server.name
    return f"The MCP server {name!r} of this project is not used before you agree to it: greenroom trust"


def _usable(found: Found, listings: Listings) -> Known | str:
    """What is known of its tools; else why it is not used, and what helps: empty for one that is switched off."""
    name = found.server.name
    if not found.server.enabled:
        return ""
    try:
        known = listings.of(found)
    except WorldFault as fault:
        return f"The MCP server {name!r} is not used. {fault}"
    if known is not None:
        return known
    return (
        f"The MCP server {name!r} is not used before you have looked at its tools: greenroom mcp check "
        f"{shlex.quote(name)}"
    )


class _Watch:
    """Tells of each difference once, however often a server is started."""

    def __init__(self, name: str, tell: Tell) -> None:
        self._name = name
        self._tell = tell
        self._told = ""

    def __call__(self, catalogue: Catalogue) -> None:
        said = told_changes(self._name, catalogue) if catalogue.changes else ""
        if said and said != self._told:
            self._tell(said)
        self._told = said


def _logged(said: str) -> None:
    logging.getLogger(__name__).warning("%s", said)
