"""What is made of settings: pages and a search. Whoever imports this loads all of the web; do it late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal

from greenroom.adapters.web.fetching import Fetching
from greenroom.adapters.web.gate import gate
from greenroom.adapters.web.guard import Guard
from greenroom.adapters.web.search.duckduckgo import DuckDuckGo
from greenroom.adapters.web.search.searxng import SearXNG
from greenroom.adapters.web.search.tavily import Tavily
from greenroom.core.base.hosts import Closed
from greenroom.core.ports.browser import Gate
from greenroom.core.ports.web import Pages, Search


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
