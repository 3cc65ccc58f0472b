"""MCP servers that a program brings for its agents."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from greenroom.app.settings.schema import Settings
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data

if TYPE_CHECKING:
    from greenroom.adapters.mcp.client import McpClient, McpTool
    from greenroom.adapters.mcp.configuration import McpServer


@dataclass(frozen=True, slots=True)
class MCPServer:
    """An MCP server for agents of a program: a `command` with `args`, or a `url`.

    Args:

    - `name`: The server's name. Its tools are called `mcp__NAME__TOOL`.
    - `env`, `cwd`: Variables for the command, and its folder. Default: the current folder.
    - `headers`: Headers for the URL. `${NAME}` stands for a variable of the environment, here and in `env`.
    - `read_only`: The tools that change nothing. They run again after a crash.
    - `timeout`: The time limit of a call in seconds. Default: 120.
    - `needs_approval`: Whether each call needs approval.
    """

    name: str
    _: KW_ONLY
    command: str = ""
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    read_only: Sequence[str] = ()
    timeout: float | None = None
    needs_approval: bool = False

    @property
    def table(self) -> Data:
        """The same as a table of the settings."""
        keys = ("command", "args", "env", "cwd", "url", "headers", "read_only", "timeout")
        return {key: value for key in keys if (value := getattr(self, key))}


class ProgramServers:
    """The MCP servers of a program, and their tools. They start with the first run that needs them, and end with the
    `Greenroom`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = asyncio.Lock()
        self._known: dict[str, tuple[McpServer, bool]] = {}
        self._clients: list[McpClient] = []
        self._tools: dict[str, tuple[McpTool, ...]] = {}
        self.asking_names: set[str] = set()
        self.notes: list[str] = []

    async def start(self, servers: Iterable[MCPServer]) -> None:
        """Start the servers that do not run yet and list their tools. Raise `WorldFault` if one does not work."""
        async with self._lock:
            wanted = dict(self._known)
            for given in servers:
                server = (_parse_server(given), given.needs_approval)
                if wanted.setdefault(given.name, server) != server:
                    raise WorldFault("library.servers_same_name", name=given.name)
            new = [server for name, server in wanted.items() if name not in self._known]
            started = await asyncio.gather(*(self._start(*server) for server in new), return_exceptions=True)
        for failure in started:
            if failure is not None:
                raise failure

    async def _start(self, server: McpServer, asks: bool) -> None:
        from greenroom.adapters.mcp.client import McpClient, ServerEnvironment, make_tools
        from greenroom.app.toolset.mcp import MANUAL_PATIENCE, list_withheld_variables, refuse_metadata

        await refuse_metadata(server)
        environment = ServerEnvironment(Path.cwd(), os.environ, list_withheld_variables(self._settings))
        client = McpClient(server, environment, agreed=None, timeouts=MANUAL_PATIENCE)
        try:
            catalogue = await client.get_catalogue()
            self._tools[server.name] = make_tools(client, catalogue)
        except BaseException:
            await client.close()
            raise
        self._clients.append(client)
        self._known[server.name] = (server, asks)
        for note in catalogue.describe_left_out(server.name):
            self.notes.append(note)
            logging.getLogger(__name__).warning("%s", note)
        self.asking_names.update(tool.name for tool in self._tools[server.name] if asks)

    def list_tools(self, servers: Iterable[MCPServer] | None = None) -> list[McpTool]:
        """Return the tools of these servers, or of all. One that has not started has none yet."""
        names = self._tools if servers is None else [server.name for server in servers]
        return [tool for name in names for tool in self._tools.get(name, ())]

    async def close(self) -> None:
        """End all servers, also those that are starting."""
        async with self._lock:
            await asyncio.gather(*(client.close() for client in self._clients))


def _parse_server(server: MCPServer) -> McpServer:
    from greenroom.adapters.mcp.configuration import ROOT_KEY, parse_servers
    from greenroom.app.toolset.mcp import refuse_server_name

    refuse_server_name(server.name)
    (parsed,) = parse_servers({ROOT_KEY: {server.name: server.table}}, "MCPServer", is_own=True)
    return parsed
