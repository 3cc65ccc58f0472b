"""The MCP servers of the workspace in which this was typed, for commands that are about them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from greenroom.app.mcp_servers import (
    Found,
    Known,
    Listings,
    Seen,
    Servers,
    look,
    own_listings,
    servers_in,
    surroundings,
)
from greenroom.app.settings.schema import Settings
from greenroom.app.trust import own_ledger
from greenroom.app.workspace import current_folder, workspace_root
from greenroom.interfaces.cli.runs.session import Desk


@dataclass(frozen=True, slots=True)
class Around:
    """A workspace, a person's settings, and what they have seen of servers."""

    root: Path
    settings: Settings
    listings: Listings

    @property
    def servers(self) -> Servers:
        """All of them."""
        return servers_in(self.root, self.settings)

    def trusts(self, found: Found) -> bool:
        """Whether the person has agreed to its being started here."""
        return found.own or own_ledger().trusted(self.root)(found.brought)

    async def look(self, found: Found, known: Known | None = None) -> Seen:
        """Start it, see what it has, end it."""
        return await look(found, surroundings(found, self.root, os.environ, self.settings), known)


def around(desk: Desk) -> Around:
    """That of this process."""
    return Around(workspace_root(current_folder()), desk.means.provisions.loaded.settings, own_listings())
