"""A vendor's server on this machine: it gives scripted answers and records the requests."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

Json = dict[str, Any]


@dataclass
class Asked:
    """A request as received."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Json


@dataclass
class Answer:
    """A response. With `holds` it never ends; with `breaks` the connection is dropped."""

    chunks: Iterable[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})
    holds: bool = False
    breaks: bool = False


def told(body: object, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer([json.dumps(body).encode()], status, {"Content-Type": "application/json", **named})


class Wire:
    """Answers with the result of `reply`."""

    def __init__(self, reply: Callable[[Asked], Answer]) -> None:
        self._reply = reply
        self.asked: list[Asked] = []
        self.reached, self.left = asyncio.Event(), asyncio.Event()
        self.base_url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.base_url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(request.path, request.query, request.headers, await request.json())
        self.asked.append(asked)
        self.reached.set()
        answer = self._reply(asked)
        response = web.StreamResponse(status=answer.status, headers=answer.headers)
        await response.prepare(request)
        for chunk in answer.chunks:
            await response.write(chunk)
        if answer.breaks:
            assert request.transport is not None
            request.transport.abort()
        if answer.holds:
            try:
                await asyncio.Event().wait()
            finally:
                self.left.set()
        return response


def in_turn(*answers: Answer) -> Callable[[Asked], Answer]:
    """Return the answers one after the other."""
    waiting = iter(answers)
    return lambda _: next(waiting)
