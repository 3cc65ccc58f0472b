"""All servers of a run: what they offer together, and their end. One that does not work costs nothing but its tools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from greenroom.adapters.mcp.catalogue import Catalogue
from greenroom.adapters.mcp.client import McpClient
from greenroom.adapters.mcp.tool import McpTool, kit
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record


@record
class Offering:
    """What all servers offer: their tools, what each said, and a sentence for each that said nothing."""

    tools: tuple[McpTool, ...]
    catalogues: Mapping[str, Catalogue]
    faults: Mapping[str, str]


class Switchboard:
    """Servers by name; those that are disabled are never started."""

    def __init__(self, clients: Iterable[McpClient]) -> None:
        self.clients = {one.server.name: one for one in clients if one.server.enabled}

    async def offering(self) -> Offering:
        """Ask all of them at once."""
        asked = await asyncio.gather(*map(_asked, self.clients.values()))
        found = {name: one for name, one in zip(self.clients, asked, strict=True) if isinstance(one, Catalogue)}
        faults = {name: one for name, one in zip(self.clients, asked, strict=True) if isinstance(one, str)}
        tools = tuple(tool for name, one in found.items() for tool in kit(self.clients[name], one))
        return Offering(tools=tools, catalogues=found, faults=faults)

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(*(one.close() for one in self.clients.values()))


async def _asked(client: McpClient) -> Catalogue | str:
    try:
        return await client.catalogue()
    except WorldFault as fault:
        return str(fault)
