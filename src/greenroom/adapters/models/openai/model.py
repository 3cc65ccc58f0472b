"""A model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple, Self, cast
from urllib.parse import urlsplit

import aiohttp
from msgspec import DecodeError, json
from yarl import URL

from greenroom.adapters.models.catalog.catalog import is_local
from greenroom.adapters.models.openai.faults import Faults
from greenroom.adapters.models.openai.request import Encoding, words_of
from greenroom.adapters.models.openai.response import Complaint, Reading, TooMuch
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import Failed, Listening, ModelCard, ModelEvent, ModelRequest, Usage

CONNECT: Final = 15.0
"""Seconds for a connection to be made."""

KEEP: Final = 60.0
"""Seconds a connection is kept after use: most servers let go after 60 to 75."""


LARGE: Final = 2**20
"""Bytes of a request that are sent piece by piece, so that nobody else has to wait for them."""


class Endpoint:
    """`key` is asked for each request and never kept; it goes to this address only: redirects are not followed."""

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
        self.address = below(base_url, "chat/completions")
        self.key = key
        self.local = is_local(base_url)
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        self._url = URL(self.address)
        self.idle = idle
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def session(self) -> aiohttp.ClientSession:
        """The connections, made on first use, anew in another event loop."""
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._loop = loop
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._connections, limit_per_host=0, keepalive_timeout=KEEP, ttl_dns_cache=300
                ),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT),
                headers=self._headers,
                trust_env=not self.local,
                auto_decompress=True,
                read_bufsize=2**18,
            )
        return self._session

    def post(self, body: bytes) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Ask for a completion."""
        data = body if len(body) < LARGE else io.BytesIO(body)
        return self.session().post(self._url, data=data, headers=self._authorization(), allow_redirects=False)

    def secrets(self) -> tuple[str, ...]:
        """What nobody else may read: the key, and what the settings add to every request."""
        return (self.key(), *(value for name, value in self._headers.items() if name != "Content-Type"))

    def _authorization(self) -> dict[str, str] | None:
        key = self.key()
        return {"Authorization": f"Bearer {key}"} if key else None

    async def models(self) -> list[str]:
        """The models that the endpoint says it has."""
        limit = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT, sock_read=self.idle)
        async with self.session().get(
            below(self.base_url, "models"), headers=self._authorization(), allow_redirects=False, timeout=limit
        ) as response:
            body: object = await response.json(content_type=None)
        items = body.get("data") if isinstance(body, dict) else body
        names = [one.get("id") for one in items if isinstance(one, dict)] if isinstance(items, list) else []
        return [name for name in names if isinstance(name, str)]

    async def close(self) -> None:
        """Let the connections go."""
        session, self._session = self._session, None
        if session is not None and not session.closed:
            await session.close()


def below(base_url: str, path: str) -> str:
    """An address below the base address; a query (Azure's api-version) stays at its end."""
    parts = urlsplit(base_url)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{path}").geturl()


BOM: Final = b"\xef\xbb\xbf"


class Sent(NamedTuple):
    """One event: what `data:` said, and the name that `event:` gave it, if any."""

    data: bytes
    name: str = ""


class Events:
    """Takes pieces, gives whole events. Comments (keep-alives) vanish; bare lines of JSON count as data."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._name = ""
        self._begun = False

    def feed(self, piece: bytes) -> list[Sent]:
        """The events that are whole now."""
        text = self._rest + piece
        if not self._begun and len(text) >= len(BOM):
            self._begun, text = True, text.removeprefix(BOM)
        lines = text.splitlines(keepends=True)
        # A line is whole when its end is there; a \r may be half of one.
        torn = bool(lines) and not lines[-1].endswith(b"\n")
        self._rest = lines.pop() if torn else b""
        found: list[Sent] = []
        for line in lines:
            self._take(line.rstrip(b"\r\n"), found)
        return found

    def end(self) -> list[Sent]:
        """What was left when the stream ended, with or without its last empty line."""
        found: list[Sent] = []
        for line in self._rest.splitlines():
            self._take(line, found)
        self._take(b"", found)
        self._rest = b""
        return found

    def _take(self, line: bytes, found: list[Sent]) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line:
            if self._data:
                found.append(Sent(b"\n".join(self._data), self._name))
            self._data, self._name = [], ""
        elif line.startswith(b"event:"):
            self._name = line[6:].strip().decode(errors="replace")
        elif line[:1] in (b"{", b"["):
            self._data.append(line)


PAGE: Final = 64 * 1024
"""Bytes of something that is no answer that are looked at."""

BYTES_PER_CHARACTER: Final = 32
"""What an answer may weigh on its way, for each character that it may have: every word of a stream is wrapped."""

DONE: Final = b"[DONE]"
_SSE: Final = (b"data:", b"event:", b":", b"id:", b"retry:")

_decode: Final = json.Decoder().decode


class Body:
    """Takes bytes, gives events. A `Failed` among them is the last one."""

    def __init__(self, reading: Reading, faults: Faults, status: int, headers: Mapping[str, str]) -> None:
        self.failed = False
        self._reading = reading
        self._faults = faults
        self._status = status
        self._headers = headers
        streams = status == 200 and "text/event-stream" in headers.get("Content-Type", "")
        self._events = Events() if streams else None
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def over(self) -> bool:
        """Whether nothing that still comes matters."""
        return self.failed or self._reading.done or (self._status != 200 and self._size > PAGE)

    def feed(self, piece: bytes) -> list[ModelEvent]:
        """What is known now."""
        self._size += len(piece)
        if self._size > BYTES_PER_CHARACTER * self._reading.most + PAGE:
            raise TooMuch(f"more than {self._size:,} bytes")
        if self._events is not None:
            return self._read(self._events.feed(piece))
        self._pieces.append(piece)
        return []

    def end(self) -> list[ModelEvent]:
        """What was left; a body that came in one piece is read now."""
        if self.failed:
            return []
        if self._events is not None:
            return self._read(self._events.end())
        data = b"".join(self._pieces)
        if self._status != 200:
            return self._fails(self._faults.answered(self._status, self._headers, data[:PAGE]))
        if data.removeprefix(BOM).lstrip().startswith(_SSE):
            events = Events()
            return self._read([*events.feed(data), *events.end()])
        return self._whole(data)

    def _read(self, sent: list[Sent]) -> list[ModelEvent]:
        found: list[ModelEvent] = []
        for one in sent:
            found += self._chunk(one)
            if self.failed:
                break
        return found

    def _fails(self, failed: Failed) -> list[ModelEvent]:
        self.failed = True
        return [failed]

    def _chunk(self, sent: Sent) -> list[ModelEvent]:
        data = sent.data.strip()
        if data == DONE:
            self._reading.done = True
        if not data or self._reading.done:
            return []
        try:
            chunk: object = _decode(data)
        except (DecodeError, UnicodeDecodeError, RecursionError):
            said = data[:120].decode(errors="replace")
            if sent.name == "error":
                raise Complaint({"error": said}) from None
            return self._fails(self._faults.fault("malformed", f"a chunk that is no JSON: {said}"))
        if not isinstance(chunk, dict):
            return []
        if sent.name == "error" and "error" not in chunk:
            raise Complaint({"error": chunk})
        return self._reading.take(cast("dict[str, object]", chunk))

    def _whole(self, data: bytes) -> list[ModelEvent]:
        try:
            body: object = _decode(data.removeprefix(BOM))
        except (DecodeError, UnicodeDecodeError, RecursionError):
            return self._fails(self._faults.answered(200, self._headers, data[:PAGE]))
        if not isinstance(body, dict):
            said = data[:120].decode(errors="replace")
            return self._fails(self._faults.fault("malformed", f"JSON that is no object: {said}"))
        found = self._reading.take(cast("dict[str, object]", body))
        # What came whole is complete, unless nothing that could be an answer was in it.
        self._reading.done = self._reading.begun or bool(body.get("choices"))
        return found


LONGEST: Final = 900.0
"""Seconds that a whole answer may take, however steadily it drips."""

CHARS_PER_TOKEN: Final = 32
"""Characters that a token has at most, by far: who sends more than its tokens could be is not listened to."""

BYTES_PER_TOKEN: Final = 6
"""Where fewer tokens were counted than this makes of a request, it is worth looking whether all of it was read."""


class Deadline:
    """Ends what is done in it with `TimeoutError` when it takes longer than `longest`, and with `ServerTimeoutError`
    when nothing is `heard` for `idle` seconds. One timer for a whole answer: aiohttp's own is set anew by each piece.
    """

    def __init__(self, longest: float, idle: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task is not None else 0
        self._idle = idle
        self._heard = self._loop.time()
        self._end = self._heard + longest
        self._error: Exception | None = None
        self._timer = self._loop.call_later(min(longest, idle), self._look)

    def heard(self) -> None:
        """Something has come."""
        self._heard = self._loop.time()

    def _look(self) -> None:
        now, silent = self._loop.time(), self._heard + self._idle
        if now < min(self._end, silent):
            self._timer = self._loop.call_at(min(self._end, silent), self._look)
        elif self._task is not None:
            self._error = aiohttp.ServerTimeoutError() if silent <= self._end else TimeoutError()
            self._task.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._timer.cancel()
        if self._error is not None and self._task is not None:
            ours = self._task.uncancel() <= self._cancelling
            if ours and isinstance(error, asyncio.CancelledError):
                raise self._error from error


def unpriced(_: int, __: int) -> int | None:
    """Nobody knows."""
    return None


class OpenAICompatible:
    """Streams chat completions. `cost` puts a price on a usage; `price` bounds what a request may cost."""

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        card: ModelCard | None = None,
        price: Callable[[int, int], int | None] = unpriced,
        cost: Callable[[Usage], int | None] = lambda usage: usage.money,
        longest: float = LONGEST,
    ) -> None:
        self.name = f"{endpoint.provider}:{model}"
        self.card = card or ModelCard()
        self.price = price
        self._cost = cost
        self._endpoint = endpoint
        self._encoding = Encoding(endpoint.provider, model, self.card)
        self._longest = longest

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask, and read the answer as it comes."""
        endpoint = self._endpoint
        faults = Faults(self.name, endpoint.address, endpoint.secrets, idle=endpoint.idle, longest=self._longest)
        reading = Reading(endpoint.provider, request.max_output * CHARS_PER_TOKEN + 4096)
        try:
            async with Listening(self._asked(request, reading, faults)) as events:
                async for event in events:
                    yield event
        except (Complaint, TooMuch, aiohttp.ClientError, OSError, ValueError, RecursionError) as error:
            yield _fault(error, faults, local=endpoint.local)

    async def _asked(self, request: ModelRequest, reading: Reading, faults: Faults) -> AsyncIterator[ModelEvent]:
        sent = self._encoding.body(request)
        async with Deadline(self._longest, self._endpoint.idle) as deadline, self._endpoint.post(sent) as response:
            body = Body(reading, faults, response.status, response.headers)
            async for piece in response.content.iter_any():
                deadline.heard()
                for event in body.feed(piece):
                    yield event
                if body.over:
                    break
            for event in body.end():
                yield event
        for event in () if body.failed else self._ended(request, reading, faults, len(sent)):
            yield event

    async def close(self) -> None:
        """Let the connections of its endpoint go."""
        await self._endpoint.close()

    def _ended(self, request: ModelRequest, reading: Reading, faults: Faults, size: int) -> Iterator[ModelEvent]:
        usage, failed = reading.counted, self._failed(request, reading, faults, size)
        if failed is None:
            yield from reading.rest()
        if usage is not None:
            yield evolve(usage, money=self._cost(usage))
        yield failed or reading.finished(self.name)

    def _failed(self, request: ModelRequest, reading: Reading, faults: Faults, size: int) -> Failed | None:
        """What is wrong with an answer that nobody has complained about."""
        if not reading.begun:
            return faults.fault("malformed", "it said nothing at all")
        if not reading.complete:
            return faults.fault("cut_off", "its end never came")
        told = reading.usage.input if reading.usage is not None else 0
        if 0 < told < size / BYTES_PER_TOKEN and told < 0.8 * (words := words_of(request)):
            return faults.fault("truncated", f"it counted {told} tokens where at least {words} were sent")
        return None


def _fault(error: Exception, faults: Faults, *, local: bool) -> Failed:
    """What went wrong, whatever it was."""
    match error:
        case Complaint():
            return faults.complained(error.said)
        case TooMuch():
            return faults.fault("too_large", str(error))
        case RecursionError():
            return faults.fault("malformed", "it is nested too deeply")
        case _:
            return faults.raised(error, local=local)
