"""One connection to a server, through the SDK: what it lists, what it answers, and why it has ended.

What it sends is sifted before the SDK reads it: one tool that is out of form must not cost all the others of its page.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client import IncomingMessage
from mcp.client._transport import ReadStream, TransportStreams
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

from greenroom.adapters.mcp.catalogue import MOST, Answer, CallLost, LeftOut, Listed, Part
from greenroom.adapters.mcp.configuration import Filled
from greenroom.adapters.mcp.schemas import NOTE, Unfit, one_line, tidy
from greenroom.adapters.mcp.transports import Pipes, Web
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, evolve
from greenroom.core.base.text import seen

BEGINNING: Final = 15_000_000
END: Final = 1_000_000
"""Characters that are kept of an answer. Of these whoever shows it to a model shows some."""

KEPT: Final = 8_000_000
"""Characters of images and files that are kept with one answer; what comes on top is only told of."""

NOTHING: Final = "It answered with nothing."


def read_result(result: CallToolResult) -> Answer:
    """The answer as an agent reads it."""
    texts: list[str] = []
    parts: list[Part] = []
    for block in result.content:
        match block:
            case TextContent():
                texts.append(block.text)
            case ResourceLink():
                texts.append(f"[link to {one_line(block.uri)}: {one_line(block.name, 80)}, not fetched]")
            case ImageContent() | AudioContent():
                part = _part(block.mime_type, block.data, parts)
                texts.append(f"[{block.type} {part.media_type}, {part.bytes} bytes: it cannot be shown here]")
            case EmbeddedResource(resource=BlobResourceContents() as file):
                part, name = _part(file.mime_type or "application/octet-stream", file.blob, parts), one_line(file.uri)
                texts.append(f"[file {name}, {part.media_type}, {part.bytes} bytes: it cannot be shown here]")
            case EmbeddedResource():
                texts.append(f"[file {one_line(block.resource.uri)}]\n{getattr(block.resource, 'text', '')}")
    if result.structured_content is not None and not any(texts):  # servers are asked to say it as a text too
        texts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
    text = bounded("\n".join(one for one in texts if one)) or NOTHING
    return Answer(text=text, failed=result.is_error, parts=tuple(parts))


def bounded(text: str) -> str:
    """The text without anything unseen, its beginning and its end if it is too long."""
    if len(text) > BEGINNING + END:
        left = NOTE.format(left=len(text) - BEGINNING - END)
        text = f"{text[:BEGINNING]}\n{left}\n{text[-END:]}"
    return seen(text)


def _part(kind: str, data: str, parts: list[Part]) -> Part:
    """Add an image, a recording or a file to the parts; its data as long as there is room."""
    room = KEPT - sum(len(part.data) for part in parts)
    size = len(data) * 3 // 4 - data[-2:].count("=")
    parts.append(Part(media_type=one_line(kind, 80), bytes=size, data=data if len(data) <= room else ""))
    return parts[-1]


SILENT: Final = logging.NullHandler()
HINTS: Final = ("readOnlyHint", "destructiveHint")


FLOOD: Final = 1_000
"""Messages that are read per second: more would keep a processor busy."""

PRATTLE: Final = 200
"""Lines that are no messages, after which a server is not listened to any longer."""


class Sieve:
    """Stands before a stream of messages. `left_out` are the tools that were taken out since it was last emptied;
    `ended` is told why nothing more comes, or (None) that the server has ended."""

    def __init__(
        self, stream: ReadStream[SessionMessage | Exception], ended: Callable[[str | None], Awaitable[None]]
    ) -> None:
        self._stream = stream
        self._ended = ended
        self._second = time.monotonic()
        self._heard = self._prattle = 0
        self.left_out: list[LeftOut] = []

    async def receive(self) -> SessionMessage | Exception:
        """The next message, with its tools sifted."""
        try:
            message = await self._stream.receive()
        except anyio.EndOfStream:
            await self._ended(None)
            raise
        self._heard += 1
        if self._heard == FLOOD:
            await asyncio.sleep(max(0.0, self._second + 1 - time.monotonic()))
            self._second, self._heard = time.monotonic(), 0
        self._prattle += isinstance(message, ValidationError)
        if isinstance(message, ValidationError) and self._prattle > PRATTLE:
            said = one_line(str(message.errors()[0]["input"]), 80)
            await self._ended(f"It prints what is no MCP to its standard output: {said!r}.")
            raise anyio.EndOfStream
        if isinstance(message, SessionMessage) and isinstance(message.message, JSONRPCResponse):
            tools = message.message.result.get("tools")
            if isinstance(tools, list):
                message.message.result["tools"] = self._sifted(tools)
        return message

    def _sifted(self, tools: list[object]) -> list[dict[str, object]]:
        kept = []
        for tool in tools:
            try:
                kept.append(sifted(tool))
            except Unfit as unfit:
                name = tool.get("name") if isinstance(tool, Mapping) else tool
                self.left_out.append(LeftOut(name=one_line(str(name), 80), why=str(unfit)))
        return kept

    async def aclose(self) -> None:
        """Close what is behind it."""
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


def sifted(tool: object) -> dict[str, object]:
    """A tool with only what is used of it; `Unfit` is a sentence about what is wrong with its form."""
    if not isinstance(tool, Mapping):
        raise Unfit("It is no table.")
    name, description, schema = tool.get("name"), tool.get("description"), tool.get("inputSchema")
    if not isinstance(name, str):
        raise Unfit("Its name is no text.")
    if not isinstance(description, str | None):
        raise Unfit("Its description is no text.")
    try:
        tidy(schema)
    except Unfit as unfit:
        raise Unfit(f"Its schema {unfit}.") from None
    assert isinstance(schema, Mapping)
    hints = tool.get("annotations")
    told = hints if isinstance(hints, Mapping) else {}
    return {
        "name": name,
        "description": description or "",
        "inputSchema": {"type": "object", **schema},
        "annotations": {hint: told[hint] for hint in HINTS if isinstance(told.get(hint), bool)},
    }


T = TypeVar("T")

PAGES: Final = 200
SUBSCRIBING: Final = 5.0
"""Seconds for a server to say that it will tell us of changes. It may also just not."""

LEAVING: Final = 12.0
PARTING: Final = 3.0
"""Seconds to leave a server that is a process of ours, which is seen dead; and one elsewhere, which is told goodbye."""

LOST: Final = ("Connection closed", "SSE stream")
"""How the SDK's own words for a lost answer begin; other words are the server's."""

LONGEST_FAULT: Final = 4_000
REFUSED: Final = {
    401: "it wants credentials that its `headers` do not have",
    403: "what its `headers` say is not enough",
    404: "there is nothing at its address",
    405: "its address does not speak MCP",
}
FAULTS: Final = (
    *(ExceptionGroup, MCPError, ValidationError, WorldFault, SubscriptionLost, httpx2.HTTPError),
    *(OSError, RuntimeError, ValueError),
)
"""All that a server, a network or the SDK can do to us."""


class Connection:
    """One life of one server."""

    def __init__(self, filled: Filled, folder: Path, changed: Callable[[], None]) -> None:
        self._filled = filled
        self._changed = changed
        self._server = filled.server
        self._web = Web(filled) if self._server.url else None
        self._pipes = Pipes(filled, folder)
        self._sieve: Sieve | None = None
        self._client: Client | None = None
        self._over = asyncio.Event()
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._calls = 0
        self._unreached = False
        self.over = ""

    @property
    def version(self) -> str:
        """The version of the protocol that both speak."""
        return self._client.protocol_version if self._client is not None else ""

    async def begin(self) -> None:
        """Start it and wait until both know each other; `WorldFault` if it ends before that."""
        self._task = asyncio.create_task(self._live(), name=f"MCP server {self._server.name}")
        ready, over = asyncio.ensure_future(self._ready.wait()), asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait((ready, over), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self.close(now=True)))
            raise
        finally:
            ready.cancel()
            over.cancel()
        if not self._ready.is_set():
            await self.close(now=True)
            raise WorldFault(self.over)

    async def tools(self) -> tuple[tuple[Listed, ...], tuple[LeftOut, ...]]:
        """All pages of its tools, or as many as anybody wants; and those of which not even the form was right."""
        found: list[Listed] = []
        client, sieve = self._known()
        sieve.left_out.clear()
        cursor: str | None = None
        for _ in range(PAGES):
            page = await self._asked(client.session.list_tools(params=PaginatedRequestParams(cursor=cursor)))
            found += [
                Listed(
                    name=one.name,
                    description=one.description or "",
                    schema=one.input_schema,
                    read_only=one.annotations.read_only_hint if one.annotations else None,
                    destructive=one.annotations.destructive_hint if one.annotations else None,
                )
                for one in page.tools
            ]
            cursor = page.next_cursor
            if not cursor or len(found) > MOST:
                return tuple(found), tuple(sieve.left_out)
        raise WorldFault(f"Its list of tools has no end: there are more than {PAGES} pages.")

    async def call(self, tool: str, arguments: Data) -> Answer:
        """Make a call, once. What a server answers with an error is its answer; only what never came is lost."""
        client, _ = self._known()
        self._calls += 1
        try:
            result = await client.session.call_tool(tool, dict(arguments), allow_input_required=True)
        except MCPError as error:
            if not self._is_lost(error):
                return Answer(text=self._words(error), failed=True)
            raise await self._lost(error) from None
        except ValidationError:
            raise CallLost("It answered with something that is no result of a call.") from None
        finally:
            self._calls -= 1
        if isinstance(result, InputRequiredResult):
            return Answer(text="It wants to ask a person something first, which is not possible here.", failed=True)
        answer = read_result(result)
        return evolve(answer, text=self._filled.cover(answer.text))

    async def alive(self, seconds: float) -> bool:
        """Whether it answers: with an error is also an answer."""
        client, _ = self._known()
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
        """Leave the SDK's contexts, and with them the processes that are ours."""
        self._end("It was ended.")
        if self._task is None:
            return
        if not self._ready.is_set() or (now and self._web is not None):
            self._task.cancel()
        _, left = await asyncio.wait({self._task}, timeout=LEAVING if self._web is None else PARTING)
        if left:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=LEAVING)

    # -------------------------------------------------------------------------------------- the task of its own

    async def _live(self) -> None:
        for name in ("mcp", "client", "httpx2"):  # or Python writes the SDK's complaints on the person's screen
            logging.getLogger(name).addHandler(SILENT)
        try:
            async with AsyncExitStack() as stack:
                client = Client(
                    self._streams(),
                    message_handler=self._heard,
                    client_info=Implementation(name="greenroom", version="1"),
                    cache=None,
                )
                self._client = await stack.enter_async_context(client)
                await self._subscribe(stack, client)
                self._ready.set()
                await self._over.wait()
        except FAULTS as error:
            self._unreached = any(isinstance(one, httpx2.ConnectError | httpx2.ConnectTimeout) for one in leaves(error))
            self._end(self._explained(error))
        finally:
            self._end("It has ended.")

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[TransportStreams]:
        async with (self._web or self._pipes).open() as (read, write):
            self._sieve = Sieve(read, self._has_ended)
            yield self._sieve, write

    async def _has_ended(self, why: str | None) -> None:
        if why is not None:
            self._end(self._filled.cover(why))
        elif self._web is None:
            self._end(await self._pipes.last_words())

    async def _subscribe(self, stack: AsyncExitStack, client: Client) -> None:
        """In the newest protocol a server tells of changes only whoever asks for it."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
            return
        with suppress(MCPError, SubscriptionLost, TimeoutError):
            async with asyncio.timeout(SUBSCRIBING):
                await stack.enter_async_context(client.listen(tools_list_changed=True))

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._changed()

    def _end(self, why: str) -> None:
        self.over = self.over or why
        self._over.set()

    # -------------------------------------------------------------------------------------- what went wrong

    def _known(self) -> tuple[Client, Sieve]:
        if self._client is None or self._sieve is None or self.over:
            raise WorldFault(self.over or "It was not started.")
        return self._client, self._sieve

    async def _asked(self, asking: Awaitable[T]) -> T:
        try:
            return await asking
        except MCPError as error:
            raise WorldFault(self.over or self._words(error)) from None
        except ValidationError:
            raise WorldFault("It answered with what is no MCP.") from None

    def _is_lost(self, error: MCPError) -> bool:
        return bool(self.over) or (error.code == CONNECTION_CLOSED and error.message.startswith(LOST))

    async def _lost(self, error: MCPError) -> WorldFault:
        """What became of a call without an answer. That nobody was reached is only sure if it was alone on its way."""
        if self._task is not None and self._web is not None and error.message == LOST[0]:
            await asyncio.wait({self._task}, timeout=1.0)
        why = self.over or self._words(error)
        return WorldFault(why) if self._unreached and self._calls == 1 else CallLost(why)

    def _explained(self, error: BaseException) -> str:
        found = leaves(error)
        if said := next((str(fault) for fault in found if isinstance(fault, WorldFault)), ""):
            return said
        if self._unreached:
            return f"It cannot be reached at {self._server.url}: {self._words(found[0])}."
        status = REFUSED.get(self._web.status) if self._web is not None else None
        if status:
            return f"It does not let us in: {status}."
        return f"{self._words(found[0])}" if str(found[0]) else f"It failed ({type(found[0]).__name__})."

    def _words(self, error: BaseException) -> str:
        said = error.message if isinstance(error, MCPError) else str(error)
        return bounded(self._filled.cover(said)[:LONGEST_FAULT]).strip() or "It gives no reason."


def leaves(error: BaseException) -> list[BaseException]:
    """The faults inside a fault."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in leaves(one)]
    return [error]


async def begin(filled: Filled, folder: Path, changed: Callable[[], None]) -> Connection:
    """A connection to this server, which knows us by now. A command begins in `folder`; `changed` is called when its
    tools are others."""
    connection = Connection(filled, folder, changed)
    await connection.begin()
    return connection
