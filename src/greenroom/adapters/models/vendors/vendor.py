"""A vendor: the SDK of one provider and its connections, shared by all its models."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any, Final, cast

import httpx2
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class

from greenroom.adapters.models.catalog.catalog import is_local
from greenroom.adapters.models.openai.model import CONNECT_TIMEOUT_S, KEEPALIVE_S
from greenroom.adapters.models.vendors import make_missing_fault
from greenroom.core.base.errors import WorldFault

IDLE_TIMEOUT_S: Final = 300.0
"""How long to wait for data, in seconds."""

MakeModel = Callable[[str], Model]


class Vendor:
    """A vendor's SDK. `key` is read for each request and passed to the SDK only. Redirects are not followed.

    `make` returns the pydantic-ai model for a name instead of the SDK, for tests and custom models.
    """

    def __init__(
        self,
        provider: str,
        *,
        key: Callable[[], str] = str,
        base_url: str = "",
        idle: float = IDLE_TIMEOUT_S,
        make: MakeModel | None = None,
    ) -> None:
        self.provider = provider
        self.base_url = base_url.rstrip("/")
        self.key = key
        self.idle = idle
        self.local = bool(base_url) and is_local(base_url)
        self._make = make
        self._connect = None if make is not None else find_sdk(provider)
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._key_in_use = ""
        self._models: dict[str, Model] = {}

    @property
    def address(self) -> str:
        """The address for messages."""
        return self.base_url or f"the default address of {self.provider}"

    def get_model(self, name: str) -> Model:
        """Return the SDK's model with this name. It is created again for another event loop or key."""
        loop, key = asyncio.get_running_loop(), self.key()
        if self._loop is not loop:
            self._client = None  # its connections belong to another loop
        if self._loop is not loop or self._key_in_use != key:
            self._models.clear()
            self._loop, self._key_in_use = loop, key
        cached = self._models.get(name)
        if cached is None:
            cached = self._models[name] = self._make_model(name, key)
        return cached

    def _make_model(self, name: str, key: str) -> Model:
        if self._make is not None:
            return self._make(name)
        connect = cast("Callable[..., Provider[Any]]", self._connect)
        options: dict[str, object] = {"api_key": key or None}
        if self.base_url:
            options["base_url"] = self.base_url
        if self.provider in ("anthropic", "google"):
            options["http_client"] = self._open_client()
        elif self.provider == "bedrock":
            options |= {"aws_read_timeout": self.idle, "aws_connect_timeout": CONNECT_TIMEOUT_S}
        provider = connect(**options)
        return infer_model(f"{self.provider}:{name}", provider_factory=lambda _: provider)

    def _open_client(self) -> httpx2.AsyncClient:
        if self._client is None or self._client.is_closed:
            self._client = httpx2.AsyncClient(
                timeout=httpx2.Timeout(self.idle, connect=CONNECT_TIMEOUT_S),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=KEEPALIVE_S),
                trust_env=not self.local,
                follow_redirects=False,
                event_hooks={"request": [fix_request]},
            )
        return self._client

    async def close(self) -> None:
        client, self._client = self._client, None
        self._models.clear()
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()


def find_sdk(provider: str) -> type[Provider[Any]]:
    """Return the SDK's provider class. Raise `WorldFault` if it is unknown or not installed."""
    try:
        with warnings.catch_warnings():
            # Hide compiler warnings about the SDK's source.
            for kind in (DeprecationWarning, SyntaxWarning):
                warnings.simplefilter("ignore", kind)
            return infer_provider_class(provider)
    except ImportError as error:
        raise make_missing_fault(provider) from error
    except ValueError as error:
        raise WorldFault("models.no_provider_sdk", provider=provider) from error


async def fix_request(request: httpx2.Request) -> None:
    """Correct a request of an SDK: set the connect timeout, and send only one User-Agent."""
    timeout = request.extensions["timeout"]
    request.extensions = {**request.extensions, "timeout": {**timeout, "connect": CONNECT_TIMEOUT_S}}
    request.headers["User-Agent"] = request.headers.get_list("User-Agent")[-1]
