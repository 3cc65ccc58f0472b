"""All servers of a run, and their end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from greenroom.adapters.mcp.client import McpClient


class Switchboard:
    """Servers that end together: one that hangs keeps none of the others waiting."""

    def __init__(self, clients: Sequence[McpClient]) -> None:
        self._clients = clients

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(*(one.close() for one in self._clients))
