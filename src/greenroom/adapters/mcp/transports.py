"""The SDK's transports: to a local program, and to a remote server at one address and no other host."""

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

from greenroom.adapters.mcp.configuration import ResolvedServer, refuse_missing_program
from greenroom.adapters.mcp.schemas import to_one_line
from greenroom.core.base.errors import translate

SOURCE_FOLDER: Final = str(Path(__file__).resolve().parents[3])
SUPERVISOR_CODE: Final = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from greenroom.adapters.processes.program_supervisor import serve; sys.exit(serve(sys.argv[2], sys.argv[3:]))"
)
CHUNK_BYTES: Final = 64 * 1024
MAX_STDERR_BYTES: Final = 2_000
"""How many bytes of stderr are kept."""

STDERR_TIMEOUT_S: Final = 1.0
"""How long to wait for the end of stderr, in seconds."""


class StdioTransport:
    """The pipes of a local server: messages through the SDK, and its stderr."""

    def __init__(self, resolved: ResolvedServer, folder: Path) -> None:
        self._resolved = resolved
        self._folder = folder
        self._stderr_tail = b""
        self._stderr_closed = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Start the server and yield its streams. At the end, all its processes are ended."""
        refuse_missing_program(self._resolved, self._folder)
        server = self._resolved.server
        parameters = StdioServerParameters(
            command=sys.executable,
            args=[
                "-I",
                "-S",
                "-c",
                SUPERVISOR_CODE,
                SOURCE_FOLDER,
                " ".join(self._resolved.env),
                server.command,
                *server.args,
            ],
            env=dict(self._resolved.env),
            cwd=self._folder / server.folder,
            encoding_error_handler="replace",  # with "strict", one bad byte would end the stream
        )
        stderr, theirs = os.pipe()
        os.set_blocking(stderr, False)
        loop = asyncio.get_running_loop()
        loop.add_reader(stderr, self._read_stderr, stderr)
        try:
            with os.fdopen(theirs, "w") as errlog:
                async with stdio_client(parameters, errlog=errlog) as streams:
                    errlog.close()  # otherwise its end goes unnoticed
                    yield streams
        finally:
            loop.remove_reader(stderr)
            os.close(stderr)

    def _read_stderr(self, stderr: int) -> None:
        if data := os.read(stderr, CHUNK_BYTES):
            self._stderr_tail = (self._stderr_tail + data)[-MAX_STDERR_BYTES:]
        else:
            self._stderr_closed.set()
            asyncio.get_running_loop().remove_reader(stderr)

    async def describe_end(self) -> str:
        """Return why the server ended, after waiting briefly for the rest of stderr and the exit code."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STDERR_TIMEOUT_S):
                await self._stderr_closed.wait()
        message = to_one_line(self._resolved.redact(self._stderr_tail.decode(errors="replace")[-600:]), 600)
        return translate("mcp.has_ended_with", message=message) if message else translate("mcp.has_ended")


MAX_MESSAGE_BYTES: Final = 128_000_000
"""Largest message in bytes."""

CONNECT_TIMEOUT_S: Final = 15.0
"""How long to wait for a connection, in seconds. Callers limit the time for a reply."""


class _BoundedBody(httpx2.AsyncByteStream):
    """A body that raises an error when it becomes too long."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for piece in self._body:
            read += len(piece)
            if read > MAX_MESSAGE_BYTES:
                raise httpx2.ReadError(translate("mcp.message_too_large", limit=MAX_MESSAGE_BYTES // 1000000))
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


class HttpTransport:
    """The HTTP connections to a server. `status` is the last response status."""

    def __init__(self, resolved: ResolvedServer) -> None:
        self._resolved = resolved
        self.status = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Yield the streams of a session, and end the session afterwards."""
        url = self._resolved.server.url
        host = httpx2.URL(url).host

        async def check(request: httpx2.Request) -> None:
            if request.url.host != host:
                raise httpx2.RequestError(translate("mcp.redirects_away", host=request.url.host))

        async with (
            httpx2.AsyncClient(
                headers={**self._resolved.headers, "accept-encoding": "identity"},
                timeout=httpx2.Timeout(CONNECT_TIMEOUT_S, read=None),
                # Use the person's proxy, except for this machine.
                trust_env=not is_loopback(url),
                event_hooks={"request": [check], "response": [self._check_response]},
                follow_redirects=False,
            ) as client,
            streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
        ):
            yield streams

    async def _check_response(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.DecodingError(translate("mcp.compressed_body"))
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _BoundedBody(response.stream)


def is_loopback(url: str) -> bool:
    """Return whether the address is on the loopback interface."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
