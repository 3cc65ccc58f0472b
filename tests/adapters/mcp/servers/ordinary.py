"""A server made with the SDK, for stdio (`python ordinary.py`) or inside a test's own loop (`made()`)."""

from __future__ import annotations

import asyncio
import base64
import os

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import BlobResourceContents, EmbeddedResource, ResourceLink, TextContent, TextResourceContents
from pydantic import BaseModel

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Weather(BaseModel):
    """What the weather is."""

    city: str
    degrees: float


def made() -> MCPServer:
    """The server with all its tools."""
    server = MCPServer("ordinary")
    for some in (plain, rich, living):
        some(server)
    return server


def plain(server: MCPServer) -> None:
    """Tools that answer in words."""

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def boom() -> str:
        """Fails."""
        raise ToolError("the \x1b[31mboiler\x1b[0m is cold")

    @server.tool()
    def environment() -> dict[str, str]:
        """What it was given."""
        return dict(os.environ)

    @server.tool()
    def big(size: int) -> str:
        """A long answer."""
        return "begin " + "a" * size + " end"


def rich(server: MCPServer) -> None:
    """Tools that answer in other ways."""

    @server.tool()
    def weather(city: str) -> Weather:
        """What the weather is."""
        return Weather(city=city, degrees=21.5)

    @server.tool()
    def picture() -> Image:
        """A picture."""
        return Image(data=PNG, format="png")

    @server.tool(structured_output=False)
    def mixed() -> list[TextContent | EmbeddedResource | ResourceLink]:
        """Texts, files and links."""
        blob = BlobResourceContents(uri="file:///a.bin", blob=base64.b64encode(b"12345").decode())
        return [
            TextContent(type="text", text="first"),
            EmbeddedResource(type="resource", resource=TextResourceContents(uri="file:///a.txt", text="second")),
            EmbeddedResource(type="resource", resource=blob),
            ResourceLink(type="resource_link", uri="https://example.org/x", name="third"),
        ]


def living(server: MCPServer) -> None:
    """Tools that take time, and that change what there is."""
    cancelled: list[str] = []

    @server.tool()
    async def slow() -> str:
        """Takes its time."""
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            cancelled.append("slow")
            raise
        return "at last"

    @server.tool()
    def was_cancelled() -> list[str]:
        """Which calls were."""
        return cancelled

    @server.tool()
    async def grow(name: str, context: Context) -> str:
        """Get one more tool."""

        def grown() -> str:
            """It was not there before."""
            return name

        server.add_tool(grown, name=name)
        await context.notify_tools_changed()
        return "grown"


if __name__ == "__main__":
    made().run()
