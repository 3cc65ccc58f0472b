"""The web for tools, as the person has set it up. What it needs is loaded when a tool first reaches out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Final, Protocol, cast

from greenroom.adapters.web.search_places import DUCKDUCKGO, TAVILY, TAVILY_KEY
from greenroom.app.settings.keys import saved_keys
from greenroom.app.settings.schema import WebSettings
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.hosts import Closed, nothing_closed
from greenroom.core.ports.web import Address, Found, Moved, Page, Pages, Search, WebFault, address

NO_ADDRESS: Final = (
    'Searching with SearXNG needs its address: `searxng_url = "http://localhost:8888"` below [web] in your settings.'
)


class LatePages:
    """Pages, once somebody wants one. Where they lead on to what is `closed`, they are not followed."""

    def __init__(self, settings: WebSettings, closed: Closed = nothing_closed) -> None:
        self._settings = settings
        self._closed = closed
        self._made: Pages | None = None

    async def fetch(self, wanted: Address) -> Page | Moved:
        """The page."""
        loaded = await asyncio.to_thread(_loaded)
        if self._made is None:
            self._made = loaded.pages(self._settings.local, self._settings.ports, self._closed)
        return await self._made.fetch(wanted)


class LateSearch:
    """The search that the person has chosen, once somebody searches."""

    def __init__(self, settings: WebSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self.host = _host(settings)

    async def find(self, query: str, count: int) -> Sequence[Found]:
        """What is found; `WebFault` where something has to be set up first."""
        if not self.host:
            raise WebFault("setup", NO_ADDRESS)
        loaded = await asyncio.to_thread(_loaded)
        return await loaded.search(self._settings.search, self._settings.searxng_url, self._key).find(query, count)

    def _key(self) -> str:
        """Of the environment first, else of the file that nobody else can read."""
        try:
            return self._environ.get(TAVILY_KEY, "").strip() or saved_keys().get("tavily", "")
        except WorldFault as fault:
            raise WebFault("setup", str(fault)) from None


def _host(settings: WebSettings) -> str:
    match settings.search:
        case "ddgs":
            return DUCKDUCKGO
        case "tavily":
            return str(address(TAVILY).host)
        case "searxng":
            try:
                return str(address(settings.searxng_url).host)
            except ModelFault:
                return ""


class _Making(Protocol):
    """What is loaded late."""

    def pages(self, local: Sequence[str], ports: Sequence[int], closed: Closed) -> Pages:
        """Pages, also of local hosts, but for what is closed."""
        ...

    def search(self, which: str, searxng_url: str, key: Callable[[], str]) -> Search:
        """The search of this name."""
        ...


def _loaded() -> _Making:
    return cast("_Making", import_module("greenroom.adapters.web.making"))
