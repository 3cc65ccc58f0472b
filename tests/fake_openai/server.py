"""A fake of OpenAI's HTTP API on a real socket of this machine.

    async with FakeOpenAI([Answer(text="Hi."), fault("rate_bare"), fault("reset_in_text")]) as server:
        ...  # ask server.base_url

It serves chat completions and the list of models, and no other part of the API.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from hmac import compare_digest
from types import TracebackType
from typing import Final, Self

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from tests.fake_openai.answers import Answer, Asked
from tests.fake_openai.faults.bodies import LOGIN, LOGIN_PATH
from tests.fake_openai.faults.shape import error
from tests.fake_openai.scripts import Heard, Script, teller
from tests.fake_openai.seen import Seen
from tests.fake_openai.speech import CREATED, Speech
from tests.fake_openai.strict import broken
from tests.fake_openai.wire import HTML, Wire, play, told, whole

HOST: Final = "127.0.0.1"
ROOT: Final = "/v1"
BACKLOG: Final = 4096
FAREWELL: Final = 1.0
"""Seconds that a connection gets to end by itself."""

INVALID: Final = "invalid_request_error"


class _Options(Struct):
    include_usage: bool = False


class _Glance(Struct):
    """The fields of a request that shape every answer. Only some scripts parse the rest."""

    model: str = ""
    stream: bool | None = None
    stream_options: _Options | None = None


class _Sent(web.StreamResponse):
    """A response that is already written; the web server has nothing left to do."""

    def __init__(self, *, keep: bool) -> None:
        super().__init__()
        self._keep = keep

    @property
    def keep_alive(self) -> bool:
        """Whether the connection serves another request."""
        return self._keep

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Do nothing: the head is written."""
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: the body is written."""


class FakeOpenAI:
    """Serves a script. `latency` is the seconds before the first byte; `chunks` the characters in a delta (0: words).

    `tear` splits every body into pieces of this many bytes. `keep` records requests, which is too slow for benchmarks.
    With `strict`, mismatched calls and results are refused, as by real providers.
    """

    def __init__(
        self,
        script: Script,
        *,
        latency: float = 0.0,
        chunks: int = 0,
        tear: int = 0,
        api_key: str = "",
        keep: bool = True,
        strict: bool = False,
    ) -> None:
        self.requests: list[Seen] = []
        self.refused: list[str] = []
        self.asked = 0
        self.connections = 0
        self.in_flight = 0
        self.in_flight_peak = 0
        self.base_url = ""
        self._tell = teller(script)
        self._models = tuple(script) if isinstance(script, Mapping) else ("fake",)
        self._latency, self._chunks, self._tear, self._api_key, self._keep = latency, chunks, tear, api_key, keep
        self._strict = strict
        self._speech = Speech()
        self._glance = Decoder(_Glance)
        self._moved = asyncio.Event()
        self._serving: set[asyncio.Task[object]] = set()
        self._kept, self._closed = _Sent(keep=True), _Sent(keep=False)

    async def __aenter__(self) -> Self:
        self._web = web.Server(self._serve, handler_cancellation=True, access_log=None)
        self._server = await asyncio.get_running_loop().create_server(self._connection, HOST, 0, backlog=BACKLOG)
        self.base_url = f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}{ROOT}"
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        self._web.pre_shutdown()
        await self._web.shutdown(FAREWELL)

    @property
    def figures(self) -> dict[str, int]:
        """Return the counters for benchmarks, also at `/stats`."""
        return {"asked": self.asked, "connections": self.connections, "in_flight_peak": self.in_flight_peak}

    async def until(self, in_flight: int) -> None:
        """Wait until this many requests are being served; 0: until no request is open."""
        while self.in_flight != in_flight:
            self._moved.clear()
            await self._moved.wait()

    def _count(self, change: int) -> None:
        self.in_flight += change
        self.in_flight_peak = max(self.in_flight_peak, self.in_flight)
        self._moved.set()

    def _connection(self) -> asyncio.Protocol:
        self.connections += 1
        return self._web()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._count(1)
        try:
            keep = await self._exchange(request)
        finally:
            self._serving.discard(task)
            self._count(-1)
        return self._kept if keep else self._closed

    async def _exchange(self, request: web.BaseRequest) -> bool:
        at = asyncio.get_running_loop().time()
        raw = await request.content.read()
        if self._keep:
            self.requests.append(Seen(request, raw, at))
        wire = self._reply(request, raw)
        if self._latency > 0:
            await asyncio.sleep(self._latency)
        # It is None for a client that has left: then this is cancelled, but perhaps not yet.
        transport = request.transport
        return transport is not None and await play(wire, transport, self._tear) and request.keep_alive

    def _reply(self, request: web.BaseRequest, raw: bytes) -> Wire:
        """Route a request: the API has two addresses."""
        place = (request.method, request.path)
        if place == ("GET", LOGIN_PATH):
            return whole(LOGIN, kind=HTML)
        if place == ("GET", "/stats"):
            return told(self.figures)
        if not self._allowed(request):
            return told(error("Incorrect API key provided.", INVALID, "invalid_api_key"), status=401)
        match place:
            case ("POST", "/v1/chat/completions"):
                return self._complete(raw)
            case ("GET", "/v1/models"):
                return self._list()
            case (method, "/v1/chat/completions" | "/v1/models"):
                return told(error(f"Not allowed to {method} on {request.path}.", INVALID), status=405)
            case (method, path):
                return told(error(f"Invalid URL ({method} {path})", INVALID), status=404)

    def _allowed(self, request: web.BaseRequest) -> bool:
        given = request.headers.get("Authorization", "")
        return not self._api_key or compare_digest(given.encode(), f"Bearer {self._api_key}".encode())

    def _complete(self, raw: bytes) -> Wire:
        """Return the next reply of the script."""
        try:
            seen = self._glance.decode(raw)
        except DecodeError as fault:
            return told(error(f"We could not parse the JSON body of your request: {fault}", INVALID), status=400)
        self.asked += 1
        heard = Heard(raw, seen.model, self.asked)
        wrong = broken(heard.body) if self._strict else ""
        if wrong:
            self.refused.append(wrong)
            return told(error(wrong, INVALID), status=400)
        reply = self._tell(heard)
        asked = Asked(
            model=seen.model,
            streaming=bool(seen.stream),
            usage=seen.stream_options is not None and seen.stream_options.include_usage,
            size=len(raw),
            chunk=self._chunks,
        )
        return self._speech.wire(reply, asked) if isinstance(reply, Answer) else reply.wire(asked)

    def _list(self) -> Wire:
        made = [{"id": name, "object": "model", "created": CREATED, "owned_by": "fake"} for name in self._models]
        return told({"object": "list", "data": made})
