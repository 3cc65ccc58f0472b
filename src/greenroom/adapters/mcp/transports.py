"""The SDK's transports: to a program of this machine, and to a server elsewhere (one address, and no other host)."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx2
from mcp import StdioServerParameters
from mcp.client._transport import TransportStreams
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from greenroom.adapters.mcp.configuration import Filled, refuse_absent
from greenroom.adapters.mcp.schemas import one_line

SOURCES: Final = str(Path(__file__).resolve().parents[3])
KEEPER: Final = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from greenroom.adapters.processes.keeper import serve; sys.exit(serve(sys.argv[2], sys.argv[3:]))"
)
PIECE: Final = 64 * 1024
TAIL: Final = 2_000
"""Bytes that are kept of what it complains about."""

LAST_WORDS: Final = 1.0
"""Seconds that its last complaint may take."""


class Pipes:
    """The pipes of one server: messages through the SDK, and what it writes to stderr."""

    def __init__(self, filled: Filled, folder: Path) -> None:
        self._filled = filled
        self._folder = folder
        self._tail = b""
        self._silent = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Start it, pass on messages, and end it with all that it has begun, whatever happens."""
        refuse_absent(self._filled, self._folder)
        server = self._filled.server
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-I", "-S", "-c", KEEPER, SOURCES, " ".join(self._filled.env), server.command, *server.args],
            env=dict(self._filled.env),
            cwd=self._folder / server.folder,
            encoding_error_handler="replace",  # strict: one such byte, and nothing is heard any more
        )
        complaints, theirs = os.pipe()
        os.set_blocking(complaints, False)
        loop = asyncio.get_running_loop()
        loop.add_reader(complaints, self._hear, complaints)
        try:
            with os.fdopen(theirs, "w") as errlog:
                async with stdio_client(parameters, errlog=errlog) as streams:
                    errlog.close()  # or its end would never be heard
                    yield streams
        finally:
            loop.remove_reader(complaints)
            os.close(complaints)

    def _hear(self, complaints: int) -> None:
        if data := os.read(complaints, PIECE):
            self._tail = (self._tail + data)[-TAIL:]
        else:
            self._silent.set()
            asyncio.get_running_loop().remove_reader(complaints)

    async def last_words(self) -> str:
        """Why it has ended: what it complained about, and its exit code, may still be on their way."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                await self._silent.wait()
        complaint = one_line(self._filled.cover(self._tail.decode(errors="replace")[-600:]), 600)
        return f"It has ended: {complaint}" if complaint else "It has ended."


LONGEST: Final = 128_000_000
"""Bytes of one message."""

CONNECT: Final = 15.0
"""Seconds to reach it. How long an answer may take is decided by whoever asks."""


class _Measured(httpx2.AsyncByteStream):
    """A body that ends with an error where it becomes too long."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for piece in self._body:
            read += len(piece)
            if read > LONGEST:
                raise httpx2.ReadError(f"It sent a message of more than {LONGEST // 1_000_000} MB.")
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


class Web:
    """The connections to one server. `status` is what it answered last."""

    def __init__(self, filled: Filled) -> None:
        self._filled = filled
        self.status = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Until it is left; a session that the server knows of is ended there too."""
        url = self._filled.server.url
        host = httpx2.URL(url).host

        async def check(request: httpx2.Request) -> None:
            if request.url.host != host:
                raise httpx2.RequestError(f"It sends us to {request.url.host!r}, where nothing of ours is sent.")

        async with (
            httpx2.AsyncClient(
                headers={**self._filled.headers, "accept-encoding": "identity"},
                timeout=httpx2.Timeout(CONNECT, read=None),
                # A proxy of the person's environment is used, except for what is on this machine.
                trust_env=not on_this_machine(url),
                event_hooks={"request": [check], "response": [self._note]},
                follow_redirects=False,
            ) as client,
            streamable_http_client(url, http_client=client, max_sse_event_size=LONGEST) as streams,
        ):
            yield streams

    async def _note(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.DecodingError("It answered with a packed body, although none was asked for.")
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Measured(response.stream)


def on_this_machine(url: str) -> bool:
    """Whether it is the loopback interface."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
