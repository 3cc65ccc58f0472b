"""A vendor: one provider's SDK and the connections to it, shared by all of its models."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any, Final, cast

import httpx2
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class

from greenroom.adapters.models.catalog.catalog import is_local
from greenroom.adapters.models.openai.model import CONNECT, KEEP
from greenroom.adapters.models.vendors import missing
from greenroom.core.base.errors import WorldFault

IDLE: Final = 300.0
"""Seconds in which something has to come."""

Make = Callable[[str], Model]


class Vendor:
    """`key` is asked for each request and goes into the SDK's client only; redirects are not followed.

    `make` gives the pydantic-ai model of a name in place of the SDK: for tests, and for models of one's own.
    """

    def __init__(
        self,
        provider: str,
        *,
        key: Callable[[], str] = str,
        base_url: str = "",
        idle: float = IDLE,
        make: Make | None = None,
    ) -> None:
        self.provider = provider
        self.base_url = base_url.rstrip("/")
        self.key = key
        self.idle = idle
        self.local = bool(base_url) and is_local(base_url)
        self._make = make
        self._connect = None if make is not None else sdk_of(provider)
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._used = ""
        self._models: dict[str, Model] = {}

    @property
    def address(self) -> str:
        """Where it is asked, as people are told."""
        return self.base_url or f"the usual address of {self.provider}"

    def model(self, name: str) -> Model:
        """The SDK's model of this name, made on first use, anew in another event loop and for another key."""
        loop, key = asyncio.get_running_loop(), self.key()
        if self._loop is not loop:
            self._client = None  # its connections belong to the other loop
        if self._loop is not loop or self._used != key:
            self._models.clear()
            self._loop, self._used = loop, key
        known = self._models.get(name)
        if known is None:
            known = self._models[name] = self._made(name, key)
        return known

    def _made(self, name: str, key: str) -> Model:
        if self._make is not None:
            return self._make(name)
        connected = self._connected(key)
        return infer_model(f"{self.provider}:{name}", provider_factory=lambda _: connected)

    def _connected(self, key: str) -> Provider[Any]:
        connect = cast("Callable[..., Provider[Any]]", self._connect)
        told: dict[str, object] = {"api_key": key or None}
        if self.base_url:
            told["base_url"] = self.base_url
        if self.provider in ("anthropic", "google"):
            told["http_client"] = self._http()
        elif self.provider == "bedrock":
            told |= {"aws_read_timeout": self.idle, "aws_connect_timeout": CONNECT}
        return connect(**told)

    def _http(self) -> httpx2.AsyncClient:
        if self._client is None or self._client.is_closed:
            self._client = httpx2.AsyncClient(
                timeout=httpx2.Timeout(self.idle, connect=CONNECT),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=KEEP),
                trust_env=not self.local,
                follow_redirects=False,
                event_hooks={"request": [in_order]},
            )
        return self._client

    async def close(self) -> None:
        """Let the connections go."""
        client, self._client = self._client, None
        self._models.clear()
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()


def sdk_of(provider: str) -> type[Provider[Any]]:
    """The class that connects to this provider; `WorldFault` when its SDK is not installed or nobody knows it."""
    try:
        with warnings.catch_warnings():
            # What a compiler has to say about the source of an SDK is nothing for those who use it.
            for kind in (DeprecationWarning, SyntaxWarning):
                warnings.simplefilter("ignore", kind)
            return infer_provider_class(provider)
    except ImportError as error:
        raise missing(provider) from error
    except ValueError as error:
        raise WorldFault(
            f'There is no SDK for {provider!r}. If it speaks OpenAI\'s language, set `wire = "openai"` for it.'
        ) from error


async def in_order(request: httpx2.Request) -> None:
    """Put right what SDKs send: they wait for a connection as long as for an answer, and say twice who they are."""
    told = request.extensions["timeout"]
    request.extensions = {**request.extensions, "timeout": {**told, "connect": CONNECT}}
    request.headers["User-Agent"] = request.headers.get_list("User-Agent")[-1]
