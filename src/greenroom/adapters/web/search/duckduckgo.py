"""DuckDuckGo through `ddgs`, which needs no key. It has an HTTP client of its own: that one goes through our proxy."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

from greenroom.adapters.web.guard import Guard
from greenroom.adapters.web.heads import USER
from greenroom.adapters.web.proxy import Proxy, Visit
from greenroom.adapters.web.search.asking import results
from greenroom.adapters.web.search.places import DUCKDUCKGO
from greenroom.core.ports.web import Found, WebFault

SECONDS: Final = 15
MISSING: Final = (
    "Searching needs an extra: `uv tool install 'greenroom[web]'` or `pip install 'greenroom[web]'`. Or ask another "
    'one: `search = "tavily"` or `search = "searxng"` below [web] in your settings.'
)

Asking = Callable[[str, int, str], object]
"""Asks `ddgs`: a query, how many results, the proxy."""


class DuckDuckGo:
    """Each search has a proxy of its own, which lets through to this one host."""

    host: str = DUCKDUCKGO

    def __init__(self, guard: Guard, asking: Asking | None = None) -> None:
        self._guard = guard
        self._asking = asking or _asked

    async def find(self, query: str, count: int) -> Sequence[Found]:
        """What it finds."""
        visits: list[Visit] = []
        token = secrets.token_urlsafe(16)
        proxy = Proxy(self._guard, [self.host], told=visits.append, token=token)
        port = await proxy.listen_here()
        try:
            through = f"http://{USER}:{token}@127.0.0.1:{port}"
            answer = await asyncio.to_thread(self._asking, query, count, through)
        finally:
            await proxy.close()
        if answer is None:
            raise _fault(visits)
        return results(answer, count, url="href", snippet="body")


def _asked(query: str, count: int, proxy: str) -> object:
    """What `ddgs` has found: a list, or None where it could not ask."""
    try:
        ddgs = import_module("ddgs.ddgs")
    except ModuleNotFoundError:
        raise WebFault("setup", MISSING) from None
    try:
        client = ddgs.DDGS(proxy=proxy, timeout=SECONDS)
        found: object = client.text(query, max_results=count, backend="duckduckgo")
    except ddgs.DDGSException as error:
        return [] if "No results" in str(error) else None
    return found


def _fault(visits: Sequence[Visit]) -> WebFault:
    why = next((one.why for one in reversed(visits) if one.verdict != "allowed"), "")
    if why:
        return WebFault("offline", f"DuckDuckGo cannot be reached, so nothing was searched. {why}")
    return WebFault(
        "status", "DuckDuckGo did not answer as it should; perhaps it was asked too often. Try again later."
    )
