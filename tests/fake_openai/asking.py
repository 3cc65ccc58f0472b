"""A plain HTTP client for the fake server's tests: it knows nothing of what it should see."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from msgspec.json import decode

from tests.fake_openai import FakeOpenAI
from tests.fake_openai.scripts import Script

SHORT = aiohttp.ClientTimeout(total=30, sock_read=0.25)
DONE = "[DONE]"
Json = dict[str, Any]


@dataclass
class Got:
    """What a client saw: `broken` is the error that ended it, if one did."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    pieces: int = 0
    broken: str = ""

    @property
    def json(self) -> Json:
        return decode(self.body.removeprefix(b"\xef\xbb\xbf"), type=Json)

    @property
    def data(self) -> list[str]:
        """The data of its events."""
        lines = self.body.decode().replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff").split("\n\n")
        return ["".join(data_lines(block)) for block in lines if data_lines(block)]

    @property
    def chunks(self) -> list[Json]:
        return [decode(one, type=Json) for one in self.data if one != DONE]

    @property
    def deltas(self) -> list[Json]:
        return [choice["delta"] for choice in self.choices if "delta" in choice]

    @property
    def choices(self) -> list[Json]:
        said = self.chunks if self.data else [self.json]
        return [choice for one in said for choice in one["choices"] or []]

    @property
    def text(self) -> str:
        """The text, streamed or not."""
        said = self.deltas if self.data else [choice["message"] for choice in self.choices]
        return "".join(one.get("content") or "" for one in said)

    @property
    def calls(self) -> list[Json]:
        said = self.deltas if self.data else [choice["message"] for choice in self.choices]
        return [call for one in said for call in one.get("tool_calls", [])]


def data_lines(block: str) -> list[str]:
    return [line.removeprefix("data:").removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]


async def ask(
    server: FakeOpenAI,
    *,
    streaming: bool = True,
    session: aiohttp.ClientSession | None = None,
    until: Callable[[Got], bool] = lambda _: False,
    **more: object,
) -> Got:
    """Ask for an answer and read all there is, or `until` it is enough."""
    body = {"model": "fake", "messages": [{"role": "user", "content": "hi"}], "stream": streaming, **more}
    if session is not None:
        return await read(session, f"{server.base_url}/chat/completions", body, until)
    async with aiohttp.ClientSession(timeout=SHORT) as own:
        return await read(own, f"{server.base_url}/chat/completions", body, until)


async def read(session: aiohttp.ClientSession, url: str, body: object, until: Callable[[Got], bool]) -> Got:
    got = Got()
    try:
        async with session.post(url, json=body) as response:
            got.status, got.headers = response.status, dict(response.headers)
            while not until(got) and (piece := await response.content.readany()):
                got.body += piece
                got.pieces += 1
    except (aiohttp.ClientError, TimeoutError) as fault:
        got.broken = type(fault).__name__
    return got


async def asked(script: Script, *, streaming: bool = True, **more: Any) -> Got:
    """What one request to a server with this script sees."""
    async with FakeOpenAI(script) as server:
        return await ask(server, streaming=streaming, **more)
