"""SearXNG: a search that somebody runs themselves, perhaps on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from greenroom.adapters.web.exchange import Request
from greenroom.adapters.web.guard import Guard
from greenroom.adapters.web.network import Network
from greenroom.adapters.web.search.asking import asked, results
from greenroom.core.base.records import evolve
from greenroom.core.ports.web import Found, address

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
