"""HTTP servers on the loopback interface, in the test's own loop: the SDK's, and a misbehaving server."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.adapters.mcp.running import until

PAGE = 50
OBJECT: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "string"}}}


def many(number: int) -> Server[Any]:
    """Return a server with `number` tools in pages. With 0 the pages are empty and never end."""

    async def listed(_: object, params: PaginatedRequestParams | None) -> ListToolsResult:
        begin = int(params.cursor) if params is not None and params.cursor else 0
        end = min(begin + PAGE, number)
        tools = [
            Tool(name=f"t{one:03}", description=f"Number {one}.", input_schema=OBJECT) for one in range(begin, end)
        ]
        return ListToolsResult(tools=tools, next_cursor=str(end) if end < number or not number else None)

    async def called(_: object, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        if params.name == "t001":
            return InputRequiredResult(request_state="more")
        return CallToolResult(content=[TextContent(type="text", text=params.name)])

    return Server("many", on_list_tools=listed, on_call_tool=called)


class Odd:
    """A server with the handshake of 2025 and invalid answers. `seen` are the headers that it got."""

    def __init__(self, elsewhere: str = "") -> None:
        self.elsewhere = elsewhere
        self.seen: list[dict[str, str]] = []
        self.called: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        self.seen.append(dict(request.headers))
        if request.method != "POST":
            await answered(send, b"", status=405)
            return
        message = json.loads(await request.body())
        if scope["path"] == "/closed":
            await answered(send, b"", status=401)
        elif message["method"] == "tools/call":
            await self._misbehave(message, send)
        elif "id" in message:
            told = json.dumps({"jsonrpc": "2.0", "id": message["id"], **spoken(message["method"])})
            await answered(send, told.encode())
        else:
            await answered(send, b"", status=202)

    async def _misbehave(self, message: dict[str, Any], send: Send) -> None:
        name = message["params"]["name"]
        self.called.append(name)
        told = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "a" * 1000}]}}
        match name:
            case "leads_away":
                await answered(send, b"", status=307, location=self.elsewhere)
            case "breaks_off":
                await answered(send, b'{"jsonrpc"', length=100)
            case "is_packed":
                await answered(send, gzip.compress(json.dumps(told).encode()), packed="gzip")
            case "never_ends":
                await endless(send)
            case "hangs":
                await asyncio.sleep(600)
            case _:
                await answered(send, json.dumps(told).encode())


def spoken(method: str) -> dict[str, Any]:
    """Return a server's description of itself."""
    names = ("leads_away", "breaks_off", "is_packed", "never_ends", "hangs", "works")
    match method:
        case "initialize":
            info = {"name": "odd", "version": "1"}
            return {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list":
            return {"result": {"tools": [{"name": name, "inputSchema": OBJECT} for name in names]}}
        case "ping":
            return {"result": {}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


async def answered(
    send: Send, body: bytes, *, status: int = 200, length: int = 0, location: str = "", packed: str = ""
) -> None:
    """Send these bytes, possibly with a larger promised length."""
    headers = [(b"content-type", b"application/json"), (b"content-length", str(length or len(body)).encode())]
    headers += [(b"location", location.encode())] if location else []
    headers += [(b"content-encoding", packed.encode())] if packed else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def endless(send: Send) -> None:
    """Send an endless answer."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    for _ in range(30):
        await send({"type": "http.response.body", "body": b" " * 1_000_000, "more_body": True})
        await asyncio.sleep(0)


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """Serve an application and yield its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1, ws="none")
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        await until(lambda: server.started)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task
