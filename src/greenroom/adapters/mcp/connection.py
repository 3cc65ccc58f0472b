"""One connection to a server through the SDK: its tools, its results, and why it ended."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectSendStream
from mcp import Client, MCPError
from mcp.client import IncomingMessage
from mcp.client._transport import TransportStreams
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    Implementation,
    InputRequiredResult,
    JSONRPCResponse,
    PaginatedRequestParams,
    ResourceLink,
    TextContent,
    ToolListChangedNotification,
)
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from greenroom.adapters.mcp.catalogue import MAX_TOOLS, CallLost, ListedTool, McpResult, ResultPart, SkippedTool
from greenroom.adapters.mcp.configuration import ResolvedServer
from greenroom.adapters.mcp.schemas import CLIPPED_NOTE, UnusableToolError, clean_schema, to_one_line
from greenroom.adapters.mcp.transports import HttpTransport, StdioTransport
from greenroom.core.base.errors import WorldFault, translate
from greenroom.core.base.records import Data, evolve
from greenroom.core.base.text import remove_control_characters

MAX_HEAD_CHARS: Final = 15_000_000
MAX_TAIL_CHARS: Final = 1_000_000
"""How many characters of a result are kept, at its start and end. A model sees a part of them."""

MAX_PART_CHARS: Final = 8_000_000
"""How many characters of images and files are kept with a result. Further ones are only described."""

EMPTY_RESULT: Final = "It answered with nothing."


def read_result(result: CallToolResult) -> McpResult:
    """Convert a result for agents."""
    texts: list[str] = []
    parts: list[ResultPart] = []
    for block in result.content:
        match block:
            case TextContent():
                texts.append(block.text)
            case ResourceLink():
                texts.append(f"[link to {to_one_line(block.uri)}: {to_one_line(block.name, 80)}, not fetched]")
            case ImageContent() | AudioContent():
                part = _add_part(block.mime_type, block.data, parts)
                texts.append(f"[{block.type} {part.media_type}, {part.bytes} bytes: it cannot be shown here]")
            case EmbeddedResource(resource=BlobResourceContents() as file):
                part = _add_part(file.mime_type or "application/octet-stream", file.blob, parts)
                name = to_one_line(file.uri)
                texts.append(f"[file {name}, {part.media_type}, {part.bytes} bytes: it cannot be shown here]")
            case EmbeddedResource():
                texts.append(f"[file {to_one_line(block.resource.uri)}]\n{getattr(block.resource, 'text', '')}")
    if result.structured_content is not None and not any(texts):  # servers should also send it as text
        texts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
    text = clip_text("\n".join(line for line in texts if line)) or EMPTY_RESULT
    return McpResult(text=text, failed=result.is_error, parts=tuple(parts))


def clip_text(text: str) -> str:
    """Return the text without invisible characters; only its start and end if it is too long."""
    if len(text) > MAX_HEAD_CHARS + MAX_TAIL_CHARS:
        note = CLIPPED_NOTE.format(left=len(text) - MAX_HEAD_CHARS - MAX_TAIL_CHARS)
        text = f"{text[:MAX_HEAD_CHARS]}\n{note}\n{text[-MAX_TAIL_CHARS:]}"
    return remove_control_characters(text)


def _add_part(kind: str, data: str, parts: list[ResultPart]) -> ResultPart:
    """Add an image, a recording or a file to the parts, with its data if there is room."""
    remaining = MAX_PART_CHARS - sum(len(part.data) for part in parts)
    size = len(data) * 3 // 4 - data[-2:].count("=")
    parts.append(ResultPart(media_type=to_one_line(kind, 80), bytes=size, data=data if len(data) <= remaining else ""))
    return parts[-1]


NULL_HANDLER: Final = logging.NullHandler()
HINT_NAMES: Final = ("readOnlyHint", "destructiveHint")


MAX_MESSAGES_PER_SECOND: Final = 1_000
"""How many messages are read per second, to limit CPU time."""

MAX_INVALID_LINES: Final = 200
"""How many invalid lines are accepted before the server is disconnected."""


def filter_tool(tool: object) -> dict[str, object]:
    """Return a tool with only the fields that are used. Raise `UnusableToolError` if it is malformed."""
    if not isinstance(tool, Mapping):
        raise UnusableToolError(translate("mcp_tool.no_object"))
    name, description, schema = tool.get("name"), tool.get("description"), tool.get("inputSchema")
    if not isinstance(name, str):
        raise UnusableToolError(translate("mcp_tool.name_no_text"))
    if not isinstance(description, str | None):
        raise UnusableToolError(translate("mcp_tool.description_no_text"))
    try:
        clean_schema(schema)
    except UnusableToolError as unfit:
        raise UnusableToolError(translate("mcp_tool.bad_schema", unfit=unfit)) from None
    assert isinstance(schema, Mapping)
    hints = tool.get("annotations")
    annotations = hints if isinstance(hints, Mapping) else {}
    return {
        "name": name,
        "description": description or "",
        "inputSchema": {"type": "object", **schema},
        "annotations": {hint: annotations[hint] for hint in HINT_NAMES if isinstance(annotations.get(hint), bool)},
    }


T = TypeVar("T")

MAX_PAGES: Final = 200
SUBSCRIBE_TIMEOUT_S: Final = 5.0
"""How long to wait for a server to confirm a subscription to changes, in seconds. It may not."""

PROCESS_CLOSE_TIMEOUT_S: Final = 12.0
REMOTE_CLOSE_TIMEOUT_S: Final = 3.0
"""How long closing may take, in seconds: for a local process, and for a remote server."""

LOST_PREFIXES: Final = ("Connection closed", "SSE stream")
"""How the SDK's messages about a lost reply start. Other messages come from the server."""

MAX_FAULT_CHARS: Final = 4_000
REFUSED_STATUSES: Final = {
    401: "mcp.needs_credentials",
    403: "mcp.weak_credentials",
    404: "mcp.no_server_there",
    405: "mcp.not_mcp_address",
}
CONNECTION_ERRORS: Final = (
    *(ExceptionGroup, MCPError, ValidationError, WorldFault, SubscriptionLost, httpx2.HTTPError),
    *(OSError, RuntimeError, ValueError),
)
"""All errors that a server, the network or the SDK can raise."""


class McpConnection:
    """One connection to a server, from its start to its end."""

    def __init__(self, resolved: ResolvedServer, folder: Path, on_change: Callable[[], None]) -> None:
        self._resolved = resolved
        self._on_change = on_change
        self._server = resolved.server
        self._http = HttpTransport(resolved) if self._server.url else None
        self._stdio = StdioTransport(resolved, folder)
        self._skipped: list[SkippedTool] = []
        self._second_start = time.monotonic()
        self._message_count = self._invalid_lines = 0
        self._client: Client | None = None
        self._ended = asyncio.Event()
        self._settled = asyncio.Event()
        self._is_ready = False
        self._task: asyncio.Task[None] | None = None
        self._calls = 0
        self._is_unreachable = False
        self.end_reason = ""

    @property
    def version(self) -> str:
        return self._client.protocol_version if self._client is not None else ""

    async def start(self) -> None:
        """Start the server and wait for the handshake. Raise `WorldFault` if it ends before."""
        self._task = asyncio.create_task(self._run(), name=f"MCP server {self._server.name}")
        try:
            await self._settled.wait()
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self.close(now=True)))
            raise
        if self.end_reason:
            await self.close(now=True)
            raise WorldFault(self.end_reason)

    async def list_tools(self) -> tuple[tuple[ListedTool, ...], tuple[SkippedTool, ...]]:
        """Return the tools of all pages up to the limit, and the malformed ones."""
        listed: list[ListedTool] = []
        client = self._require_client()
        self._skipped.clear()
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._request(client.session.list_tools(params=PaginatedRequestParams(cursor=cursor)))
            listed += [
                ListedTool(
                    name=tool.name,
                    description=tool.description or "",
                    schema=tool.input_schema,
                    read_only=tool.annotations.read_only_hint if tool.annotations else None,
                    destructive=tool.annotations.destructive_hint if tool.annotations else None,
                )
                for tool in page.tools
            ]
            cursor = page.next_cursor
            if not cursor or len(listed) > MAX_TOOLS:
                return tuple(listed), tuple(self._skipped)
        raise WorldFault("mcp.tool_list_endless", max_pages=MAX_PAGES)

    async def call(self, tool: str, arguments: Data) -> McpResult:
        """Send a call once. An error from the server is a result; only a missing reply is lost."""
        client = self._require_client()
        self._calls += 1
        try:
            result = await client.session.call_tool(tool, dict(arguments), allow_input_required=True)
        except MCPError as error:
            if not self._is_lost(error):
                return McpResult(text=self._describe_error(error), failed=True)
            raise await self._make_lost_fault(error) from None
        except ValidationError:
            raise CallLost("mcp.invalid_call_result") from None
        finally:
            self._calls -= 1
        if isinstance(result, InputRequiredResult):
            return McpResult(text=translate("mcp.asks_person"), failed=True)
        answer = read_result(result)
        return evolve(answer, text=self._resolved.redact(answer.text))

    async def is_alive(self, seconds: float) -> bool:
        """Return whether the server replies in time. An error counts as a reply."""
        client = self._require_client()
        try:
            async with asyncio.timeout(seconds):
                if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    await client.session.send_discover(LATEST_MODERN_VERSION)
                else:
                    await client.session.send_ping()
        except TimeoutError:
            return False
        except MCPError as error:
            return not self._is_lost(error)
        return True

    async def close(self, *, now: bool = False) -> None:
        """Close the SDK's contexts and end the server's processes."""
        self._end(translate("mcp.was_ended"))
        if self._task is None:
            return
        if not self._is_ready or (now and self._http is not None):
            self._task.cancel()
        _, pending = await asyncio.wait(
            {self._task}, timeout=PROCESS_CLOSE_TIMEOUT_S if self._http is None else REMOTE_CLOSE_TIMEOUT_S
        )
        if pending:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=PROCESS_CLOSE_TIMEOUT_S)

    async def _run(self) -> None:
        for name in ("mcp", "client", "httpx2"):  # keeps the SDK's log messages off the screen
            logging.getLogger(name).addHandler(NULL_HANDLER)
        try:
            async with AsyncExitStack() as stack:
                client = Client(
                    self._open_streams(),
                    message_handler=self._handle_message,
                    client_info=Implementation(name="greenroom", version="1"),
                    cache=None,
                )
                self._client = await stack.enter_async_context(client)
                await self._subscribe(stack, client)
                self._is_ready = True
                self._settled.set()
                await self._ended.wait()
        except CONNECTION_ERRORS as error:
            self._is_unreachable = any(
                isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout) for cause in list_causes(error)
            )
            self._end(self._explain(error))
        finally:
            self._end(translate("mcp.has_ended"))

    @asynccontextmanager
    async def _open_streams(self) -> AsyncIterator[TransportStreams]:
        sink, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        async with (self._http or self._stdio).open() as (incoming, write), anyio.create_task_group() as group:
            group.start_soon(self._pass_messages_on, incoming, sink)
            yield read, write
            group.cancel_scope.cancel()

    async def _pass_messages_on(
        self,
        incoming: AsyncIterator[SessionMessage | Exception],
        sink: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        """Hand the server's messages to the SDK until they end. The reason is known before the SDK sees the end."""
        async with sink:
            try:
                async for message in incoming:
                    await self._check_flood(message)
                    self._remove_malformed_tools(message)
                    await sink.send(message)
            except WorldFault as fault:
                self._end(self._resolved.redact(str(fault)))
            except anyio.BrokenResourceError:  # the session reads no more
                return
            if self._http is None and not self.end_reason:
                self._end(await self._stdio.describe_end())

    async def _check_flood(self, message: SessionMessage | Exception) -> None:
        """Slow a server down that sends too much. Raise `WorldFault` if it sends something else than MCP."""
        self._message_count += 1
        if self._message_count == MAX_MESSAGES_PER_SECOND:
            await asyncio.sleep(max(0.0, self._second_start + 1 - time.monotonic()))
            self._second_start, self._message_count = time.monotonic(), 0
        if isinstance(message, ValidationError):
            self._invalid_lines += 1
            if self._invalid_lines > MAX_INVALID_LINES:
                raise WorldFault("mcp.not_mcp_output", excerpt=to_one_line(str(message.errors()[0]["input"]), 80))

    def _remove_malformed_tools(self, message: SessionMessage | Exception) -> None:
        """Keep the good tools of a page, or one malformed tool would invalidate all of it."""
        response = message.message if isinstance(message, SessionMessage) else None
        tools = response.result.get("tools") if isinstance(response, JSONRPCResponse) else None
        if not isinstance(response, JSONRPCResponse) or not isinstance(tools, list):
            return
        kept = []
        for tool in tools:
            try:
                kept.append(filter_tool(tool))
            except UnusableToolError as unfit:
                name = tool.get("name") if isinstance(tool, Mapping) else tool
                self._skipped.append(SkippedTool(name=to_one_line(str(name), 80), why=str(unfit)))
        response.result["tools"] = kept

    async def _subscribe(self, stack: AsyncExitStack, client: Client) -> None:
        """Subscribe to changes of tools, which the newest protocol requires."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
            return
        with suppress(MCPError, SubscriptionLost, TimeoutError):
            async with asyncio.timeout(SUBSCRIBE_TIMEOUT_S):
                await stack.enter_async_context(client.listen(tools_list_changed=True))

    async def _handle_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._on_change()

    def _end(self, why: str) -> None:
        self.end_reason = self.end_reason or why
        self._ended.set()
        self._settled.set()

    def _require_client(self) -> Client:
        if self._client is None or self.end_reason:
            raise WorldFault(self.end_reason or translate("mcp.was_not_started"))
        return self._client

    async def _request(self, request: Awaitable[T]) -> T:
        try:
            return await request
        except MCPError as error:
            raise WorldFault(self.end_reason or self._describe_error(error)) from None
        except ValidationError:
            raise WorldFault("mcp.invalid_mcp_answer") from None

    def _is_lost(self, error: MCPError) -> bool:
        return bool(self.end_reason) or (error.code == CONNECTION_CLOSED and error.message.startswith(LOST_PREFIXES))

    async def _make_lost_fault(self, error: MCPError) -> WorldFault:
        """Return the fault for a call without a reply. That the server was not reached is certain only for a single
        call."""
        if self._task is not None and self._http is not None and error.message == LOST_PREFIXES[0]:
            await asyncio.wait({self._task}, timeout=1.0)
        why = self.end_reason or self._describe_error(error)
        return WorldFault(why) if self._is_unreachable and self._calls == 1 else CallLost(why)

    def _explain(self, error: BaseException) -> str:
        causes = list_causes(error)
        if message := next((str(fault) for fault in causes if isinstance(fault, WorldFault)), ""):
            return message
        if self._is_unreachable:
            return translate("mcp.unreachable", url=self._server.url, why=self._describe_error(causes[0]))
        status = REFUSED_STATUSES.get(self._http.status) if self._http is not None else None
        if status:
            return translate("mcp.refused", why=translate(status))
        if str(causes[0]):
            return self._describe_error(causes[0])
        return translate("mcp.failed", kind=type(causes[0]).__name__)

    def _describe_error(self, error: BaseException) -> str:
        message = error.message if isinstance(error, MCPError) else str(error)
        return clip_text(self._resolved.redact(message)[:MAX_FAULT_CHARS]).strip() or translate("mcp.no_reason")


def list_causes(error: BaseException) -> list[BaseException]:
    """Return the errors inside an exception group."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for member in error.exceptions for leaf in list_causes(member)]
    return [error]


async def connect(resolved: ResolvedServer, folder: Path, on_change: Callable[[], None]) -> McpConnection:
    """Connect to a server. A command starts in `folder`; `on_change` is called when its tools change."""
    connection = McpConnection(resolved, folder, on_change)
    await connection.start()
    return connection
