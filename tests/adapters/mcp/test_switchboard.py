"""All servers of a run together, and what it costs to have none."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from greenroom.adapters.mcp.client import McpClient, ServerEnvironment, close_all
from greenroom.adapters.mcp.configuration import McpServer
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve
from greenroom.core.ports.installation import how_to_install
from tests.adapters.mcp.running import QUICK, marked, raw

LIGHT = """import sys, greenroom.adapters.mcp.client
print([name for name in ('mcp', 'anyio', 'pydantic', 'jsonschema_rs') if name in sys.modules])"""


def client(server: McpServer, name: str) -> McpClient:
    return McpClient(evolve(server, name=name), ServerEnvironment(Path.cwd(), {}), agreed=None, timeouts=QUICK)


async def test_all_of_them_end_together(tmp_path: Path) -> None:
    clients = [client(raw(tmp_path), name) for name in ("first", "second", "never started")]
    try:
        await asyncio.gather(*(one.get_catalogue() for one in clients[:2]))
        assert len(marked(tmp_path.name)) >= 2
    finally:
        await close_all(clients)
    assert marked(tmp_path.name) == []


async def test_who_has_not_installed_it_is_told_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "greenroom.adapters.mcp.connection", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(WorldFault, match=re.escape(how_to_install("mcp"))):
        await client(raw(tmp_path), "first").get_catalogue()


def test_nothing_of_the_sdk_is_loaded_before_a_server_is_needed() -> None:
    loaded = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"
