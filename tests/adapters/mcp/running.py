"""MCP servers in tests: clients, calls as the runtime makes them, and all processes that a server started."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from greenroom.adapters.mcp.catalogue import ToolPin
from greenroom.adapters.mcp.client import McpClient, McpTimeouts, McpTool, ServerEnvironment, make_tools
from greenroom.adapters.mcp.configuration import McpServer, parse_servers
from greenroom.core.ports.executor import Outcome, StepContext

HERE = Path(__file__).parent
RAW = str(HERE / "servers" / "raw.py")
ORDINARY = str(HERE / "servers" / "ordinary.py")
TOKEN = "PROBE_TOKEN"
QUICK = McpTimeouts(start=30.0, alive=0.5)


def raw(folder: Path, mode: str = "polite", **more: object) -> McpServer:
    """Return the server without the SDK. Its processes carry the folder's name."""
    table = {"command": sys.executable, "args": [RAW, mode, str(folder)], "env": {TOKEN: folder.name}, **more}
    (server,) = parse_servers({"raw": table}, is_own=True)
    return server


@asynccontextmanager
async def client_of(
    server: McpServer,
    *,
    agreed: Mapping[str, ToolPin] | None = None,
    patience: McpTimeouts = QUICK,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[McpClient]:
    """Open a client, and close it at the end."""
    around = ServerEnvironment(Path.cwd(), os.environ if environ is None else environ, withheld={"OPENAI_API_KEY"})
    client = McpClient(server, around, agreed=agreed, timeouts=patience)
    try:
        yield client
    finally:
        await client.close()


async def tool_of(client: McpClient, name: str) -> McpTool:
    """Return one of its tools by the server's name for it."""
    catalogue = await client.get_catalogue()
    return next(one for one in make_tools(client, catalogue) if one.name.endswith(f"__{name}"))


async def ran(tool: McpTool, /, **arguments: object) -> Outcome:
    """Run a tool as a step would."""
    work = SimpleNamespace(instruction_content=arguments)
    return await tool.run(cast("StepContext", SimpleNamespace(step=SimpleNamespace(work=work))))


async def asked(client: McpClient, name: str, /, **arguments: object) -> Outcome:
    return await ran(await tool_of(client, name), **arguments)


def output(outcome: Outcome) -> str:
    return str((outcome.result or {}).get("output"))


def calls(folder: Path) -> list[str]:
    """Return the calls that reached the server."""
    return (folder / "calls").read_text().split() if (folder / "calls").exists() else []


def marked(token: str) -> list[int]:
    """Return the processes with this token in their environment, without zombies."""
    wanted = f"{TOKEN}={token}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


async def until(what: Callable[[], bool], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it never came to that"
        await asyncio.sleep(0.01)


def write_tools(folder: Path, *tools: object) -> None:
    """Write additional tools for the server's list."""
    (folder / "tools.json").write_text(json.dumps(tools))
