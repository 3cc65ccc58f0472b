"""The tools for the web, all that belong together."""

from __future__ import annotations

from greenroom.abilities.tools.web.web_fetch import WebFetch
from greenroom.abilities.tools.web.web_search import ALIASES, NAME, WebSearch
from greenroom.core.base.clock import Clock
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.ports.web import Pages, Search


def web_tools(pages: Pages, search: Search, clock: Clock) -> tuple[ToolExecutor, ...]:
    """`web_fetch`, `web_search`, and the search again under the names that other designs have for it."""
    return (WebFetch(pages, clock), *(WebSearch(search, name) for name in (NAME, *ALIASES)))
