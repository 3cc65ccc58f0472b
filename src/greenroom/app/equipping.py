"""What a workspace has beside the tools of the house: of files, of packages, and the tools of MCP servers.

The command line and the library have the same, under the same trust. No server is started for it.
"""

from __future__ import annotations

import os
from pathlib import Path

from greenroom.app.custom.equipment import custom_equipment
from greenroom.app.hands.equipment import Equipment, together
from greenroom.app.servers.equipment import equipment_of
from greenroom.app.servers.looking import meet
from greenroom.app.settings.layers import load
from greenroom.app.settings.schema import Settings
from greenroom.app.trust.ledger import Trusted, own_ledger


def equipment_in(root: Path) -> Equipment:
    """All that may be used, and a note for all that may not."""
    return together((files_in(root), servers_in(root)))


def files_in(root: Path) -> Equipment:
    """What files and packages give. This is where they are run."""
    return custom_equipment(root, *_agreed(root))


def servers_in(root: Path) -> Equipment:
    """The tools of MCP servers; each of them starts at its first call, and ends when this is closed."""
    settings, trusted = _agreed(root)
    return equipment_of(root, os.environ, settings, trusted)


async def meet_servers(root: Path) -> tuple[str, ...]:
    """Before a run: see what servers have that nobody has looked at; a sentence for each that does not work."""
    settings, trusted = _agreed(root)
    return await meet(root, os.environ, settings, trusted)


def _agreed(root: Path) -> tuple[Settings, Trusted]:
    """The person's settings there, and what they have agreed to."""
    return load({}, os.environ, root).settings, own_ledger().trusted(root)
