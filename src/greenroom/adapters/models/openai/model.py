"""A model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Self, cast
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from greenroom.adapters.models.catalog.catalog import is_local
from greenroom.adapters.models.openai.faults import FaultMaker
from greenroom.adapters.models.openai.request import RequestEncoder, count_words
from greenroom.adapters.models.openai.response import ErrorInResponse, ResponseReader, ResponseTooLarge, decode_chunk
from greenroom.adapters.models.openai.usage import find_believable_usage
from greenroom.core.base.errors import translate
from greenroom.core.base.records import Record, evolve
from greenroom.core.ports.model import ClosingStream, Failed, ModelCard, ModelEvent, ModelRequest, Usage

_log: Final = logging.getLogger(__name__)

CONNECT_TIMEOUT_S: Final = 15.0
"""How long to wait for a connection, in seconds."""

KEEPALIVE_S: Final = 60.0
"""How long an idle connection is kept, in seconds. Most servers close it after 60 to 75."""


STREAMED_BODY_BYTES: Final = 2**20
"""Size in bytes from which a request is sent in pieces, so that it does not block other requests."""


class Endpoint:
    """An endpoint and its connections. `key` is read for each request, never stored, and sent to this address only.
    Redirects are not followed."""

    def __init__(
        self,
        provider: str,
        base_url: str,
        *,
        key: Callable[[], str] = str,
        headers: Mapping[str, str] | None = None,
        idle: float = 300.0,
        connections: int = 0,
    ) -> None:
        self.provider = provider
        self.base_url = base_url.rstrip("/")
        self.address = join_url(base_url, "chat/completions")
        self.key = key
        self.local = is_local(base_url)
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        self._url = URL(self.address)
        self.idle = idle
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def open_session(self) -> aiohttp.ClientSession:
        """Return the HTTP session. It is created on first use, and again for another event loop."""
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._loop = loop
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._connections, limit_per_host=0, keepalive_timeout=KEEPALIVE_S, ttl_dns_cache=300
                ),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
                headers=self._headers,
                trust_env=not self.local,
                auto_decompress=True,
                read_bufsize=2**18,
            )
        return self._session

    def post(self, body: bytes) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Send a chat completion request."""
        data = body if len(body) < STREAMED_BODY_BYTES else io.BytesIO(body)
        return self.open_session().post(self._url, data=data, headers=self._make_authorization(), allow_redirects=False)

    def list_secrets(self) -> tuple[str, ...]:
        """Return the secrets: the key, and the headers from the settings."""
        return (self.key(), *(value for name, value in self._headers.items() if name != "Content-Type"))

    def _make_authorization(self) -> dict[str, str] | None:
        key = self.key()
        return {"Authorization": f"Bearer {key}"} if key else None

    async def list_models(self) -> list[str]:
        """Return the models that the endpoint lists."""
        limit = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=self.idle)
        async with self.open_session().get(
            join_url(self.base_url, "models"), headers=self._make_authorization(), allow_redirects=False, timeout=limit
        ) as response:
            body: object = await response.json(content_type=None)
        items = body.get("data") if isinstance(body, dict) else body
        names = [item.get("id") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        return [name for name in names if isinstance(name, str)]

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None and not session.closed:
            await session.close()


def join_url(base_url: str, path: str) -> str:
    """Append a path to the base URL, before a query such as Azure's api-version."""
    parts = urlsplit(base_url)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{path}").geturl()


CLOSING_SERVER: Final = "llama.cpp"
"""It closes the connection after a streamed response, although it promises to keep it. The next request would fail."""

BOM: Final = b"\xef\xbb\xbf"


class ServerSentEvent(Record, frozen=True):
    """One server-sent event: the content of `data:` and the name from `event:`, if any."""

    data: bytes
    name: str = ""


class EventParser:
    """Parses server-sent events from pieces. Comments (keep-alives) are dropped; bare JSON lines count as data."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._name = ""
        self._has_begun = False

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """Add a piece and return the events that are complete now."""
        text = self._rest + piece
        if not self._has_begun and len(text) >= len(BOM):
            self._has_begun, text = True, text.removeprefix(BOM)
        lines = text.splitlines(keepends=True)
        # A line is complete when its end has arrived; a \r may be half of the end.
        is_torn = bool(lines) and not lines[-1].endswith(b"\n")
        self._rest = lines.pop() if is_torn else b""
        events: list[ServerSentEvent] = []
        for line in lines:
            self._parse_line(line.rstrip(b"\r\n"), events)
        return events

    def end(self) -> list[ServerSentEvent]:
        """Return what is left at the end of the stream, with or without a final empty line."""
        events: list[ServerSentEvent] = []
        for line in self._rest.splitlines():
            self._parse_line(line, events)
        self._parse_line(b"", events)
        self._rest = b""
        return events

    def _parse_line(self, line: bytes, events: list[ServerSentEvent]) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line:
            if self._data:
                events.append(ServerSentEvent(b"\n".join(self._data), self._name))
            self._data, self._name = [], ""
        elif line.startswith(b"event:"):
            self._name = line[6:].strip().decode(errors="replace")
        elif line[:1] in (b"{", b"["):
            self._data.append(line)


MAX_ERROR_BYTES: Final = 64 * 1024
"""How many bytes of an error response are read."""

BYTES_PER_CHARACTER: Final = 32
"""Largest number of bytes per character of a response. Each word of a stream is wrapped in JSON."""

DONE: Final = b"[DONE]"
_SSE: Final = (b"data:", b"event:", b":", b"id:", b"retry:")


class ResponseBodyReader:
    """Converts the bytes of a response to events. A `Failed` event is always the last."""

    def __init__(self, reader: ResponseReader, faults: FaultMaker, status: int, headers: Mapping[str, str]) -> None:
        self.has_failed = False
        self._reader = reader
        self._faults = faults
        self._status = status
        self._headers = headers
        streams = status == 200 and "text/event-stream" in headers.get("Content-Type", "")
        self._events = EventParser() if streams else None
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def is_over(self) -> bool:
        """Whether the rest of the response can be ignored."""
        return self.has_failed or self._reader.is_done or (self._status != 200 and self._size > MAX_ERROR_BYTES)

    def feed(self, piece: bytes) -> list[ModelEvent]:
        """Add a piece and return its events."""
        self._size += len(piece)
        if self._size > BYTES_PER_CHARACTER * self._reader.max_chars + MAX_ERROR_BYTES:
            raise ResponseTooLarge(f"more than {self._size:,} bytes")
        if self._events is not None:
            return self._read_events(self._events.feed(piece))
        self._pieces.append(piece)
        return []

    def end(self) -> list[ModelEvent]:
        """Return the remaining events. A body that is not a stream is read here."""
        if self.has_failed:
            return []
        if self._events is not None:
            return self._read_events(self._events.end())
        data = b"".join(self._pieces)
        if self._status != 200:
            return self._fail(self._faults.from_response(self._status, self._headers, data[:MAX_ERROR_BYTES]))
        if data.removeprefix(BOM).lstrip().startswith(_SSE):
            events = EventParser()
            return self._read_events([*events.feed(data), *events.end()])
        return self._read_whole(data)

    def _read_events(self, sent: list[ServerSentEvent]) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for event in sent:
            events += self._read_chunk(event)
            if self.has_failed:
                break
        return events

    def _fail(self, failed: Failed) -> list[ModelEvent]:
        self.has_failed = True
        return [failed]

    def _read_chunk(self, sent: ServerSentEvent) -> list[ModelEvent]:
        data = sent.data.strip()
        if data == DONE:
            self._reader.is_done = True
        if not data or self._reader.is_done:
            return []
        try:
            chunk = decode_chunk(data)
        except (ValueError, RecursionError):
            excerpt = data[:120].decode(errors="replace")
            if sent.name == "error":
                raise ErrorInResponse({"error": excerpt}) from None
            return self._fail(
                self._faults.make_fault("malformed", translate("provider_faults.chunk_not_json", excerpt=excerpt))
            )
        if not isinstance(chunk, dict):
            return []
        if sent.name == "error" and "error" not in chunk:
            raise ErrorInResponse({"error": chunk})
        return self._reader.take(cast("dict[str, object]", chunk))

    def _read_whole(self, data: bytes) -> list[ModelEvent]:
        try:
            body = decode_chunk(data.removeprefix(BOM))
        except (ValueError, RecursionError):
            return self._fail(self._faults.from_response(200, self._headers, data[:MAX_ERROR_BYTES]))
        if not isinstance(body, dict):
            excerpt = data[:120].decode(errors="replace")
            return self._fail(
                self._faults.make_fault("malformed", translate("provider_faults.not_object", excerpt=excerpt))
            )
        events = self._reader.take(cast("dict[str, object]", body))
        # A body without streaming is complete if it contains any answer.
        self._reader.is_done = self._reader.has_begun or bool(body.get("choices"))
        return events


MAX_RESPONSE_S: Final = 900.0
"""How long a whole response may take, in seconds."""

CHARS_PER_TOKEN: Final = 32
"""Generous upper bound of characters per token. A longer response is aborted."""

BYTES_PER_TOKEN: Final = 6
"""If a request has more bytes per counted token than this, it may have been truncated."""


class Deadline:
    """A deadline for a response: `TimeoutError` after `max_seconds` seconds, `ServerTimeoutError` after `idle` seconds
    without data. It needs one timer per response; aiohttp's own is reset by each piece."""

    def __init__(self, max_seconds: float, idle: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task is not None else 0
        self._idle = idle
        self._last_data = self._loop.time()
        self._end = self._last_data + max_seconds
        self._error: Exception | None = None
        self._timer = self._loop.call_later(min(max_seconds, idle), self._check)

    def extend(self) -> None:
        """Restart the idle time, because data has arrived."""
        self._last_data = self._loop.time()

    def _check(self) -> None:
        now, idle_end = self._loop.time(), self._last_data + self._idle
        if now < min(self._end, idle_end):
            self._timer = self._loop.call_at(min(self._end, idle_end), self._check)
        elif self._task is not None:
            self._error = aiohttp.ServerTimeoutError() if idle_end <= self._end else TimeoutError()
            self._task.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._timer.cancel()
        if self._error is not None and self._task is not None:
            ours = self._task.uncancel() <= self._cancelling
            if ours and isinstance(error, asyncio.CancelledError):
                raise self._error from error


def price_unknown(_: int, __: int) -> int | None:
    """Return None: the price is unknown."""
    return None


class OpenAICompatible:
    """A model that streams chat completions. `cost` prices a usage; `price` is an upper bound for a request."""

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        card: ModelCard | None = None,
        price: Callable[[int, int], int | None] = price_unknown,
        cost: Callable[[Usage], int | None] = lambda usage: usage.money,
        max_seconds: float = MAX_RESPONSE_S,
    ) -> None:
        self.name = f"{endpoint.provider}:{model}"
        self.card = card or ModelCard()
        self.price = price
        self._cost = cost
        self._endpoint = endpoint
        self._encoder = RequestEncoder(endpoint.provider, model, self.card)
        self._max_seconds = max_seconds
        self._low_count = (0, 0)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send a request and yield the response as it arrives."""
        endpoint = self._endpoint
        faults = FaultMaker(
            self.name, endpoint.address, endpoint.list_secrets, idle=endpoint.idle, max_seconds=self._max_seconds
        )
        reader = ResponseReader(endpoint.provider, request.max_output * CHARS_PER_TOKEN + 4096)
        try:
            async with ClosingStream(self._stream_response(request, reader, faults)) as events:
                async for event in events:
                    yield event
        except (ErrorInResponse, ResponseTooLarge, aiohttp.ClientError, OSError, ValueError, RecursionError) as error:
            yield _translate_error(error, faults, local=endpoint.local)

    async def _stream_response(
        self, request: ModelRequest, reader: ResponseReader, faults: FaultMaker
    ) -> AsyncIterator[ModelEvent]:
        sent = self._encoder.encode_request(request)
        async with Deadline(self._max_seconds, self._endpoint.idle) as deadline, self._endpoint.post(sent) as response:
            body = ResponseBodyReader(reader, faults, response.status, response.headers)
            async for piece in response.content.iter_any():
                deadline.extend()
                for event in body.feed(piece):
                    yield event
                if body.is_over:
                    break
            for event in body.end():
                yield event
            if response.headers.get("Server") == CLOSING_SERVER:
                response.close()
        for event in () if body.has_failed else self._finish(request, reader, faults, len(sent)):
            yield event

    async def close(self) -> None:
        await self._endpoint.close()

    def _finish(
        self, request: ModelRequest, reader: ResponseReader, faults: FaultMaker, size: int
    ) -> Iterator[ModelEvent]:
        usage, failure = reader.counted_usage, self._find_failure(request, reader, faults, size)
        usage = find_believable_usage(usage, request, self, sent=size, received=reader.received_chars)
        if failure is None:
            yield from reader.emit_rest()
        if usage is not None:
            yield evolve(usage, money=self._cost(usage))
        yield failure or reader.make_finished(self.name)

    def _find_failure(
        self, request: ModelRequest, reader: ResponseReader, faults: FaultMaker, size: int
    ) -> Failed | None:
        """Return the fault of a response that reported no error itself; None if it is complete."""
        if not reader.has_begun:
            return faults.make_fault("malformed", translate("provider_faults.empty_response"))
        if not reader.is_complete:
            return faults.make_fault("cut_off", translate("provider_faults.end_missing"))
        counted, before = reader.usage.input if reader.usage is not None else 0, self._low_count
        is_low = 0 < counted < size / BYTES_PER_TOKEN and counted < 0.8 * (words := count_words(request))
        self._low_count = (counted, size) if is_low else (0, 0)
        if is_low:
            _log.warning("%s", translate("provider_faults.may_be_truncated", model=self.name, counted=counted))
        if is_low and before[0] == counted and before[1] != size:
            return faults.make_fault(
                "truncated", translate("provider_faults.counted_too_few", counted=counted, words=words)
            )
        return None


def _translate_error(error: Exception, faults: FaultMaker, *, local: bool) -> Failed:
    match error:
        case ErrorInResponse():
            return faults.from_error_body(error.body)
        case ResponseTooLarge():
            return faults.make_fault("too_large", str(error))
        case UnicodeError():
            return faults.make_fault("malformed", translate("provider_faults.not_utf8"))
        case RecursionError():
            return faults.make_fault("malformed", translate("provider_faults.nested_too_deeply"))
        case _:
            return faults.from_exception(error, local=local)
