"""A typed client of the HTTP API, for programs: start and follow runs, answer, and decide about changes.

async with Client() as client:
    run = await client.start("fix the failing tests", cost_limit=1.0)
    async for row in client.follow(run.id):
        print(row.text)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Final, Self, TypeVar
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel, TypeAdapter

from greenroom.app.settings.home import home_folder
from greenroom.core.base.errors import GreenroomError, WorldFault, make_refusal
from greenroom.http import schemas
from greenroom.http.access import AccessFile

DEFAULT_URL: Final = "http://127.0.0.1:8760"
RETRY_S: Final = 0.5
MAX_LINE_BYTES: Final = 2**24
ENDED_STATES: Final = ("finished", "failed", "cancelled")
ROWS: Final = TypeAdapter(list[schemas.EventRow])
M = TypeVar("M", bound=BaseModel)


class Client:
    """A connection to a server. Without a `token`, that of the home on this machine is used.

    Every method raises `RefusedError` with the reason of a refusal, and `WorldFault` if the server cannot do it now.
    """

    def __init__(self, url: str = DEFAULT_URL, token: str = "") -> None:
        if not token:
            access = AccessFile(home_folder())
            access.open()
            token = access.token
        self._url = f"{url.rstrip('/')}/api"
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._opened: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
        self._opened = aiohttp.ClientSession(headers=self._headers, timeout=timeout, read_bufsize=MAX_LINE_BYTES // 2)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def propose(self, request: str, **options: object) -> schemas.Proposal:
        """Plan a request. Nothing starts."""
        return await self._send(schemas.Proposal, "POST", "/plans", request=request, **options)

    async def start(self, request: str, **options: object) -> schemas.StartedRun:
        """Start a run. The options are those of `RunInput`: plan, proposal, confirm_checks, agent, model …"""
        return await self._send(schemas.StartedRun, "POST", "/runs", request=request, **options)

    async def read(self, run: str) -> schemas.RunDetail:
        """Return a run as it is now."""
        return await self._send(schemas.RunDetail, "GET", f"/runs/{run}")

    async def read_change(self, run: str) -> schemas.Change:
        """Return the change of a run, with its verdict and receipts."""
        return await self._send(schemas.Change, "GET", f"/runs/{run}/change")

    async def use(self, run: str, verb: str, **options: object) -> schemas.VerbResult:
        """Control a run: pause, resume, cancel, fork, rewind, apply, branch, discard or undo."""
        return await self._send(schemas.VerbResult, "POST", f"/runs/{run}/{verb}", **options)

    async def send(self, run: str, text: str, to: str = "") -> schemas.VerbResult:
        """Send a message to an agent, or to all that work on a run."""
        return await self._send(schemas.VerbResult, "POST", f"/runs/{run}/messages", text=text, to=to)

    async def list_inbox(self) -> list[schemas.InboxItem]:
        """Return what waits for a person, of all runs."""
        return (await self._send(schemas.Page[schemas.InboxItem], "GET", "/inbox?limit=500")).items

    async def answer(self, item: schemas.InboxItem, **answer: object) -> schemas.VerbResult:
        """Answer an item of the inbox: decision, scope, rule, text."""
        path = f"/runs/{item.run}/inbox/{quote(item.id, safe='')}"
        return await self._send(schemas.VerbResult, "POST", path, **answer)

    async def follow(self, run: str, after: int = 0) -> AsyncIterator[schemas.EventRow]:
        """Yield the events of a run after a version until it ends. A lost connection is opened again."""
        version, end = after, await self._find_end(run)
        while end is None or version < end:
            async for row in self._read_stream(run, version):
                version = row.version
                yield row
                end = await self._find_end(run) if row.type == "TaskEnded" else end
                if version == end:
                    return
            await asyncio.sleep(RETRY_S)

    async def _find_end(self, run: str) -> int | None:
        """Return the last version of a run that has ended."""
        detail = await self.read(run)
        return detail.head if detail.state in ENDED_STATES else None

    async def _read_stream(self, run: str, after: int) -> AsyncIterator[schemas.EventRow]:
        """Yield new events of a run until the connection is lost."""
        params, kind = {"run": run, "after": f"{run}:{after}"}, ""
        async with AsyncExitStack() as stack:
            stack.enter_context(suppress(aiohttp.ClientError, TimeoutError))
            got = self._session.get(f"{self._url}/events", params=params)
            answer = await stack.enter_async_context(got)
            if answer.status >= 400:
                raise _make_error(answer.status, await answer.read())
            async for line in answer.content:
                name, _, data = line.decode().rstrip("\n").partition(": ")
                kind = data if name == "event" else kind
                for row in ROWS.validate_json(data) if name == "data" and kind == "events" else ():
                    yield row

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None:
            raise WorldFault("server.client_closed")
        return self._opened

    async def _send(self, kind: type[M], method: str, path: str, **body: object) -> M:
        sent = body if method == "POST" else None
        try:
            async with self._session.request(method, f"{self._url}{path}", json=sent) as answer:
                status, content = answer.status, await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise WorldFault("server.not_reached", url=self._url, why=error) from None
        if status >= 400:
            raise _make_error(status, content)
        return kind.model_validate_json(content)


def _make_error(status: int, content: bytes) -> GreenroomError:
    """Return the error that a refusal names."""
    problem = schemas.Problem.model_validate_json(content)
    if status >= 500:
        return WorldFault(problem.message)
    return make_refusal(problem.code, problem.message, problem.hint)
