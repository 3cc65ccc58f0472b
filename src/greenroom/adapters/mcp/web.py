"""The SDK's transport to a server elsewhere: one address, and no other host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from greenroom.adapters.mcp.configuration import Filled

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
