"""What the tools for memories share: the stores that they work with."""

from __future__ import annotations

from greenroom.abilities.tools.carded import CardedTool
from greenroom.abilities.tools.memory.stores import Stores


class MemoryTool(CardedTool):
    """A tool for the memories of a team. It can be run again freely, unless a store has files or the like."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
