"""Create page fetchers, searches and egress proxies from settings. Importing this loads the whole web adapter; import
it late."""

from __future__ import annotations

import asyncio
import json
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from typing import Final, Literal
from urllib.parse import urlencode

from greenroom.adapters.web import DUCKDUCKGO, TAVILY
from greenroom.adapters.web.address_filter import AddressFilter, Network
from greenroom.adapters.web.page_fetcher import (
    FETCH_LIMITS,
    FetchLimits,
    WebPageFetcher,
    WebRequest,
    open_response,
    read_body,
)
from greenroom.adapters.web.proxy import USER, Proxy, ProxyVisit
from greenroom.core.base.hosts import HostBlocker
from greenroom.core.base.records import evolve
from greenroom.core.ports.browser import EgressEndpoint
from greenroom.core.ports.installation import how_to_install
from greenroom.core.ports.web import PageFetcher, SearchEngine, SearchHit, WebFault, parse_address

MAX_TITLE_CHARS: Final = 300
MAX_SNIPPET_CHARS: Final = 1_000
MAX_URL_CHARS: Final = 2_000
REFUSED_STATUSES: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


async def request_json(
    request: WebRequest,
    address_filter: AddressFilter,
    refusal: str,
    limits: FetchLimits = FETCH_LIMITS,
    ssl_context: ssl.SSLContext | None = None,
) -> Mapping[str, object]:
    """Send a request and return the JSON object. `refusal` is the message if the service refuses."""
    place = str(request.address.host)
    try:
        async with (
            asyncio.timeout(limits.total),
            open_response(request, address_filter, limits, ssl_context) as response,
        ):
            if response.status in REFUSED_STATUSES:
                raise WebFault("setup", refusal)
            if response.status == HTTPStatus.TOO_MANY_REQUESTS:
                raise WebFault("status", f"{place!r} was asked too often. Search again in a minute.")
            if response.status != HTTPStatus.OK:
                raise WebFault("status", f"{place!r} answered {response.status}. Search again later.")
            data = await read_body(response, limits)
    except TimeoutError:
        raise WebFault("slow", f"{place!r} did not answer within {limits.total:g} s.") from None
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise WebFault("broken", f"{place!r} did not answer in JSON. {refusal}")
    return answer


def parse_results(answer: object, count: int, *, url: str = "url", snippet: str = "content") -> Sequence[SearchHit]:
    """Return the results with a title and a web address, without duplicates."""
    results_by_url: dict[str, SearchHit] = {}
    for row in answer if isinstance(answer, list) else ():
        link = row.get(url) if isinstance(row, dict) else None
        if isinstance(link, str) and link.startswith(("http://", "https://")) and len(link) <= MAX_URL_CHARS:
            title, link = _clip_line(row.get("title"), MAX_TITLE_CHARS) or link, _clip_line(link, MAX_URL_CHARS)
            results_by_url.setdefault(
                link, SearchHit(title=title, url=link, snippet=_clip_line(row.get(snippet), MAX_SNIPPET_CHARS))
            )
    return tuple(results_by_url.values())[:count]


def _clip_line(value: object, max_chars: int) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


TAVILY_MAX_RESULTS: Final = 20
NO_KEY: Final = (
    'Searching with Tavily needs a key: set TAVILY_API_KEY, or put `tavily = "…"` into keys.toml in your settings '
    'folder. Without one, `search = "ddgs"` below [web] in your settings asks DuckDuckGo.'
)
TAVILY_REFUSED: Final = (
    "Tavily does not accept the key. Look at TAVILY_API_KEY, or at keys.toml in your settings folder."
)


class Tavily:
    """Search with Tavily. `key` is read for each search and never stored."""

    def __init__(
        self,
        address_filter: AddressFilter,
        key: Callable[[], str],
        url: str = TAVILY,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._address_filter = address_filter
        self._key = key
        self._address = parse_address(url)
        self._ssl_context = ssl_context
        self.host = str(self._address.host)

    async def find(self, query: str, count: int) -> Sequence[SearchHit]:
        """Return results in the order of Tavily."""
        key = self._key()
        if not key:
            raise WebFault("setup", NO_KEY)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Accept": "application/json"}
        body = json.dumps({"query": query, "max_results": min(count, TAVILY_MAX_RESULTS)}).encode()
        request = WebRequest(address=self._address, method="POST", headers=headers, body=body)
        answer = await request_json(request, self._address_filter, TAVILY_REFUSED, ssl_context=self._ssl_context)
        return parse_results(answer.get("results"), count)


SEARXNG_REFUSED: Final = (
    "This SearXNG does not answer in JSON: its settings.yml needs `formats: [html, json]` below `search`, "
    "and its limiter off."
)


class SearXNG:
    """Search with SearXNG. The person chose its address, so this host may be local, and no other."""

    def __init__(self, base_url: str, network: Network | None = None) -> None:
        self._base = parse_address(base_url)
        self.host = str(self._base.host)
        self._address_filter = AddressFilter([self.host], network=network)

    async def find(self, query: str, count: int) -> Sequence[SearchHit]:
        """Return the first page of results."""
        path = self._base.target.partition("?")[0].rstrip("/")
        target = f"{path}/search?{urlencode({'q': query, 'format': 'json'})}"
        request = WebRequest(address=evolve(self._base, target=target), headers={"Accept": "application/json"})
        answer = await request_json(request, self._address_filter, SEARXNG_REFUSED)
        return parse_results(answer.get("results"), count)


DDGS_TIMEOUT_S: Final = 15


DdgsSearch = Callable[[str, int, str], object]
"""Calls `ddgs` with a query, the number of results and the proxy."""


class DuckDuckGo:
    """Search with DuckDuckGo. Each search has its own proxy, which allows only this host."""

    host: str = DUCKDUCKGO

    def __init__(self, address_filter: AddressFilter, search_ddgs: DdgsSearch | None = None) -> None:
        self._address_filter = address_filter
        self._search_ddgs = search_ddgs or _search_ddgs

    async def find(self, query: str, count: int) -> Sequence[SearchHit]:
        visits: list[ProxyVisit] = []
        token = secrets.token_urlsafe(16)
        proxy = Proxy(self._address_filter, [self.host], on_visit=visits.append, token=token)
        port = await proxy.listen_on_loopback()
        try:
            through = f"http://{USER}:{token}@127.0.0.1:{port}"
            answer = await asyncio.to_thread(self._search_ddgs, query, count, through)
        finally:
            await proxy.close()
        if answer is None:
            raise _make_fault(visits)
        return parse_results(answer, count, url="href", snippet="body")


def _search_ddgs(query: str, count: int, proxy: str) -> object:
    """Return the results of `ddgs` as a list; None if the request failed."""
    try:
        from ddgs.ddgs import DDGS
        from ddgs.exceptions import DDGSException
    except ModuleNotFoundError:
        raise WebFault(
            "setup",
            f"Searching needs an extra: {how_to_install('web')}. Or ask another "
            'one: `search = "tavily"` or `search = "searxng"` below [web] in your settings.',
        ) from None
    try:
        return DDGS(proxy=proxy, timeout=DDGS_TIMEOUT_S).text(query, max_results=count, backend="duckduckgo")
    except DDGSException as error:
        return [] if "No results" in str(error) else None


def _make_fault(visits: Sequence[ProxyVisit]) -> WebFault:
    why = next((visit.why for visit in reversed(visits) if visit.verdict != "allowed"), "")
    if why:
        return WebFault("offline", f"DuckDuckGo cannot be reached, so nothing was searched. {why}")
    return WebFault(
        "status", "DuckDuckGo did not answer as it should; perhaps it was asked too often. Try again later."
    )


MAX_REFUSED_HOSTS: Final = 50
"""How many refused hosts are remembered."""


@asynccontextmanager
async def serve_egress(address_filter: AddressFilter, hosts: Sequence[str]) -> AsyncIterator[EgressEndpoint]:
    """Run an egress proxy to these hosts."""
    refused: dict[str, str] = {}

    def record_visit(visit: ProxyVisit) -> None:
        if visit.verdict == "allowed":
            refused.pop(visit.host, None)
        elif visit.host and len(refused) < MAX_REFUSED_HOSTS:
            refused[visit.host] = visit.why

    token = secrets.token_urlsafe(16)
    proxy = Proxy(address_filter, hosts, on_visit=record_visit, token=token)
    port = await proxy.listen_on_loopback()
    try:
        yield EgressEndpoint(port=port, user=USER, token=token, refused=refused)
    finally:
        await proxy.close()


def make_pages(local: Sequence[str], ports: Sequence[int], closed: HostBlocker) -> PageFetcher:
    """Return a page fetcher. The `local` hosts are allowed, `closed` ones never."""
    return WebPageFetcher(AddressFilter(local, ports=ports, closed=closed))


def open_egress(
    local: Sequence[str], ports: Sequence[int], hosts: Sequence[str], closed: HostBlocker
) -> AbstractAsyncContextManager[EgressEndpoint]:
    """Run an egress proxy for a local program, to these hosts only, and never to `closed` ones."""
    return serve_egress(AddressFilter(local, ports=ports, closed=closed), hosts)


def make_search(which: Literal["ddgs", "tavily", "searxng"], searxng_url: str, key: Callable[[], str]) -> SearchEngine:
    """Return the search with this name. It does not use the `local` hosts of pages."""
    match which:
        case "ddgs":
            return DuckDuckGo(AddressFilter())
        case "tavily":
            return Tavily(AddressFilter(), key)
        case "searxng":
            return SearXNG(searxng_url)
