"""What is made of settings: pages and a search. Whoever imports this loads all of the web; do it late."""

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
from greenroom.adapters.web.fetching import LIMITS, Fetching, Limits, Request, answered, body_of
from greenroom.adapters.web.guard import Guard, Network
from greenroom.adapters.web.proxy import USER, Proxy, Visit
from greenroom.core.base.errors import how_to_install
from greenroom.core.base.hosts import Closed
from greenroom.core.base.records import evolve
from greenroom.core.ports.browser import Gate
from greenroom.core.ports.web import Found, Pages, Search, WebFault, address

TITLE: Final = 300
SNIPPET: Final = 1_000
URL: Final = 2_000
ASKING_REFUSED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


async def asked(
    request: Request, guard: Guard, refused: str, limits: Limits = LIMITS, secure: ssl.SSLContext | None = None
) -> Mapping[str, object]:
    """The answer; `refused` is what is said when the service will not serve us."""
    place = str(request.address.host)
    try:
        async with (
            asyncio.timeout(limits.total),
            answered(request, guard, limits, secure) as response,
        ):
            if response.status in ASKING_REFUSED:
                raise WebFault("setup", refused)
            if response.status == HTTPStatus.TOO_MANY_REQUESTS:
                raise WebFault("status", f"{place!r} was asked too often. Search again in a minute.")
            if response.status != HTTPStatus.OK:
                raise WebFault("status", f"{place!r} answered {response.status}. Search again later.")
            data = await body_of(response, limits)
    except TimeoutError:
        raise WebFault("slow", f"{place!r} did not answer within {limits.total:g} s.") from None
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise WebFault("broken", f"{place!r} did not answer in JSON. {refused}")
    return answer


def results(answer: object, count: int, *, url: str = "url", snippet: str = "content") -> Sequence[Found]:
    """The results in an answer: each has a title and an address of the web; a double counts once."""
    found: dict[str, Found] = {}
    for row in answer if isinstance(answer, list) else ():
        place = row.get(url) if isinstance(row, dict) else None
        if isinstance(place, str) and place.startswith(("http://", "https://")) and len(place) <= URL:
            title, place = _line(row.get("title"), TITLE) or place, _line(place, URL)
            found.setdefault(place, Found(title=title, url=place, snippet=_line(row.get(snippet), SNIPPET)))
    return tuple(found.values())[:count]


def _line(value: object, most: int) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= most else f"{text[: most - 1]}…"


TAVILY_MOST: Final = 20
NO_KEY: Final = (
    'Searching with Tavily needs a key: set TAVILY_API_KEY, or put `tavily = "…"` into keys.toml in your settings '
    'folder. Without one, `search = "ddgs"` below [web] in your settings asks DuckDuckGo.'
)
TAVILY_REFUSED: Final = (
    "Tavily does not accept the key. Look at TAVILY_API_KEY, or at keys.toml in your settings folder."
)


class Tavily:
    """`key` is asked for each search and never kept."""

    def __init__(
        self, guard: Guard, key: Callable[[], str], url: str = TAVILY, secure: ssl.SSLContext | None = None
    ) -> None:
        self._guard = guard
        self._key = key
        self._address = address(url)
        self._secure = secure
        self.host = str(self._address.host)

    async def find(self, query: str, count: int) -> Sequence[Found]:
        """As it ranks them."""
        key = self._key()
        if not key:
            raise WebFault("setup", NO_KEY)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Accept": "application/json"}
        body = json.dumps({"query": query, "max_results": min(count, TAVILY_MOST)}).encode()
        request = Request(address=self._address, method="POST", headers=headers, body=body)
        answer = await asked(request, self._guard, TAVILY_REFUSED, secure=self._secure)
        return results(answer.get("results"), count)


REFUSED: Final = (
    "This SearXNG does not answer in JSON: its settings.yml needs `formats: [html, json]` below `search`, "
    "and its limiter off."
)


class SearXNG:
    """The person chose it, so it may be local; and only it."""

    def __init__(self, base_url: str, network: Network | None = None) -> None:
        self._base = address(base_url)
        self.host = str(self._base.host)
        self._guard = Guard([self.host], network=network)

    async def find(self, query: str, count: int) -> Sequence[Found]:
        """Its first page of results."""
        path = self._base.target.partition("?")[0].rstrip("/")
        target = f"{path}/search?{urlencode({'q': query, 'format': 'json'})}"
        request = Request(address=evolve(self._base, target=target), headers={"Accept": "application/json"})
        answer = await asked(request, self._guard, REFUSED)
        return results(answer.get("results"), count)


SECONDS: Final = 15
MISSING: Final = (
    f"Searching needs an extra: {how_to_install('web')}. Or ask another "
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
        from ddgs.ddgs import DDGS
        from ddgs.exceptions import DDGSException
    except ModuleNotFoundError:
        raise WebFault("setup", MISSING) from None
    try:
        return DDGS(proxy=proxy, timeout=SECONDS).text(query, max_results=count, backend="duckduckgo")
    except DDGSException as error:
        return [] if "No results" in str(error) else None


def _fault(visits: Sequence[Visit]) -> WebFault:
    why = next((one.why for one in reversed(visits) if one.verdict != "allowed"), "")
    if why:
        return WebFault("offline", f"DuckDuckGo cannot be reached, so nothing was searched. {why}")
    return WebFault(
        "status", "DuckDuckGo did not answer as it should; perhaps it was asked too often. Try again later."
    )


MOST: Final = 50
"""Hosts that are remembered as refused."""


@asynccontextmanager
async def gate(guard: Guard, hosts: Sequence[str]) -> AsyncIterator[Gate]:
    """A way out to these hosts."""
    refused: dict[str, str] = {}

    def told(visit: Visit) -> None:
        if visit.verdict == "allowed":
            refused.pop(visit.host, None)
        elif visit.host and len(refused) < MOST:
            refused[visit.host] = visit.why

    token = secrets.token_urlsafe(16)
    proxy = Proxy(guard, hosts, told=told, token=token)
    port = await proxy.listen_here()
    try:
        yield Gate(port=port, user=USER, token=token, refused=refused)
    finally:
        await proxy.close()


def pages(local: Sequence[str], ports: Sequence[int], closed: Closed) -> Pages:
    """Pages, also of the local hosts that a person has named, but for what is closed."""
    return Fetching(Guard(local, ports=ports, closed=closed))


def opened_gate(
    local: Sequence[str], ports: Sequence[int], hosts: Sequence[str], closed: Closed
) -> AbstractAsyncContextManager[Gate]:
    """A way out for a program of this machine, to these hosts but for what is closed, and to no others."""
    return gate(Guard(local, ports=ports, closed=closed), hosts)


def search(which: Literal["ddgs", "tavily", "searxng"], searxng_url: str, key: Callable[[], str]) -> Search:
    """The search of this name. What is local to pages is none of its concern."""
    match which:
        case "ddgs":
            return DuckDuckGo(Guard())
        case "tavily":
            return Tavily(Guard(), key)
        case "searxng":
            return SearXNG(searxng_url)
