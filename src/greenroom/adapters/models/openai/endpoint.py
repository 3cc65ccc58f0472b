"""An endpoint: one provider's address and the connections to it, shared by all of its models."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from greenroom.adapters.models.openai.locality import is_local

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
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT, sock_read=self.idle),
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
        async with self.session().get(
            below(self.base_url, "models"), headers=self._authorization(), allow_redirects=False
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
