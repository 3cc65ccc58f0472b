"""Servers in tests: clients of them, calls as the house makes them, and every process that one of them has begun."""

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

from greenroom.adapters.mcp.catalogue import Pin
from greenroom.adapters.mcp.client import McpClient, McpTool, Patience, Surroundings, kit
from greenroom.adapters.mcp.configuration import Server, servers
from greenroom.core.ports.executor import Bench, Outcome

HERE = Path(__file__).parent
RAW = str(HERE / "servers" / "raw.py")
ORDINARY = str(HERE / "servers" / "ordinary.py")
TOKEN = "PROBE_TOKEN"
QUICK = Patience(start=30.0, alive=0.5)


def raw(folder: Path, mode: str = "polite", **more: object) -> Server:
    """The server without the SDK. Its processes carry the folder's name."""
    table = {"command": sys.executable, "args": [RAW, mode, str(folder)], "env": {TOKEN: folder.name}, **more}
    (server,) = servers({"raw": table}, own=True)
    return server


@asynccontextmanager
async def client_of(
    server: Server,
    *,
    agreed: Mapping[str, Pin] | None = None,
    patience: Patience = QUICK,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[McpClient]:
    """A client that is closed in the end."""
    around = Surroundings(Path.cwd(), os.environ if environ is None else environ, withheld={"OPENAI_API_KEY"})
    client = McpClient(server, around, agreed=agreed, patience=patience)
    try:
        yield client
    finally:
        await client.close()


async def tool_of(client: McpClient, name: str) -> McpTool:
    """One of its tools, by the name that the server gives it."""
    catalogue = await client.catalogue()
    return next(one for one in kit(client, catalogue) if one.name.endswith(f"__{name}"))


async def ran(tool: McpTool, /, **arguments: object) -> Outcome:
    """Run it as a step would."""
    work = SimpleNamespace(instruction_content=arguments)
    return await tool.run(cast("Bench", SimpleNamespace(step=SimpleNamespace(work=work))))


async def asked(client: McpClient, name: str, /, **arguments: object) -> Outcome:
    """Both at once."""
    return await ran(await tool_of(client, name), **arguments)


def output(outcome: Outcome) -> str:
    """The text of a result."""
    return str((outcome.result or {}).get("output"))


def calls(folder: Path) -> list[str]:
    """The calls that really reached the server."""
    return (folder / "calls").read_text().split() if (folder / "calls").exists() else []


def marked(token: str) -> list[int]:
    """The processes with this token in their environment, zombies apart."""
    wanted = f"{TOKEN}={token}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


async def until(what: Callable[[], bool], seconds: float = 15.0) -> None:
    """Look until it is so."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it never came to that"
        await asyncio.sleep(0.01)


def write_tools(folder: Path, *tools: object) -> None:
    """What the server lists on top of its own."""
    (folder / "tools.json").write_text(json.dumps(tools))
