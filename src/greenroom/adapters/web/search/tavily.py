"""Tavily: a search service for agents, with a key."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Sequence
from typing import Final

from greenroom.adapters.web.exchange import Request
from greenroom.adapters.web.guard import Guard
from greenroom.adapters.web.search.asking import asked, results
from greenroom.adapters.web.search.places import TAVILY
from greenroom.core.ports.web import Found, WebFault, address

MOST: Final = 20
NO_KEY: Final = (
    'Searching with Tavily needs a key: set TAVILY_API_KEY, or put `tavily = "…"` into keys.toml in your settings '
    'folder. Without one, `search = "ddgs"` below [web] in your settings asks DuckDuckGo.'
)
REFUSED: Final = "Tavily does not accept the key. Look at TAVILY_API_KEY, or at keys.toml in your settings folder."


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
        body = json.dumps({"query": query, "max_results": min(count, MOST)}).encode()
        request = Request(address=self._address, method="POST", headers=headers, body=body)
        answer = await asked(request, self._guard, REFUSED, secure=self._secure)
        return results(answer.get("results"), count)
