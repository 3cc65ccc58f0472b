"""The pages that a research run has read. Each is fetched once, also after a crash: the log is the cache."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from hashlib import sha256
from typing import Final

from greenroom.abilities.tools.web import FETCH_NAME
from greenroom.core.base.clock import Clock
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import evolve
from greenroom.core.ports.web import PageFetcher, Redirect, WebAddress, WebPage, parse_address
from greenroom.core.state.step import Step

TRACKING_PARAMETERS: Final = re.compile(r"(?:utm_\w+|gclid|fbclid|msclkid)(?:=.*)?")


def normalise_url(address: WebAddress) -> str:
    """Return the key of an address: without fragment, default port and tracking parameters."""
    path, _, query = address.target.partition("?")
    kept = "&".join(part for part in query.split("&") if not TRACKING_PARAMETERS.fullmatch(part))
    return evolve(address, target=f"{path}?{kept}" if kept else path).url


class PageArchive:
    """Fetches pages for a run and keeps them. One request at a time goes to a host, with a `delay` in seconds.

    `load` returns the ended steps of the run, with whole results.
    """

    def __init__(
        self, fetcher: PageFetcher, load: Callable[[], Awaitable[Iterable[Step]]], clock: Clock, *, delay: float
    ) -> None:
        self._fetcher = fetcher
        self._load = load
        self._clock = clock
        self._delay = delay
        self._pages: dict[str, WebPage | Redirect] = {}
        self._urls_by_digest: dict[str, str] = {}
        self._reads: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._hosts: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._next_request: dict[str, float] = {}
        self._loading = asyncio.Lock()
        self._is_loaded = False

    async def fetch(self, address: WebAddress) -> WebPage | Redirect:
        """Return a page of this run, or fetch it. Raise `WebFault` if that fails."""
        await self._load_once()
        key = normalise_url(address)
        async with self._reads[key]:
            if key not in self._pages:
                self._keep(key, await self._request(address))
            return self._pages[key]

    async def get(self, url: str) -> WebPage | None:
        """Return a page that this run has read, or None."""
        await self._load_once()
        try:
            found = self._pages.get(normalise_url(parse_address(url)))
        except ModelFault:
            return None
        return found if isinstance(found, WebPage) else None

    async def _request(self, address: WebAddress) -> WebPage | Redirect:
        host, loop = str(address.host), asyncio.get_running_loop()
        async with self._hosts[host]:
            await asyncio.sleep(max(0.0, self._next_request.get(host, 0.0) - loop.time()))
            try:
                page = await self._fetcher.fetch(address)
            finally:
                self._next_request[host] = loop.time() + self._delay
        return evolve(page, retrieved=self._clock.now()) if isinstance(page, WebPage) else page

    def _keep(self, key: str, page: WebPage | Redirect) -> None:
        """Keep a page, also under its address after redirects. Say if another page has the same text."""
        if isinstance(page, WebPage):
            digest = sha256("".join(page.text.split()).encode()).hexdigest()
            first = self._urls_by_digest.setdefault(digest, page.url)
            if first != page.url:
                page = evolve(page, note=f"{page.note} The same text as {first}.".strip())
            self._pages.setdefault(normalise_url(parse_address(page.url)), page)
        self._pages[key] = page

    async def _load_once(self) -> None:
        async with self._loading:
            if self._is_loaded:
                return
            for step in await self._load():
                url, page = (step.work.instruction_content or {}).get("url"), _read_page(step)
                if page is not None:
                    self._keep(normalise_url(parse_address(str(url))), page)
            self._is_loaded = True


def _read_page(step: Step) -> WebPage | None:
    """Return the page in the result of a step, or None if it fetched none."""
    result = step.result or {}
    if step.work.executor != FETCH_NAME or step.state != "finished" or "retrieved" not in result:
        return None
    at = datetime.fromisoformat(str(result["retrieved"]))
    text = str(result["output"]).partition("\n\n")[2]
    return WebPage(
        url=str(result["url"]), text=text, kind="text", title=str(result["title"]), retrieved=int(at.timestamp() * 1000)
    )
