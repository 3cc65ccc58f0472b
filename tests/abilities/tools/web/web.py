"""A web that says what the test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from greenroom.core.base.clock import Millis
from greenroom.core.ports.web import Address, Found, Moved, Page, WebFault


class Noon:
    """It is always the same time."""

    def now(self) -> Millis:
        return Millis(1_800_000_000_123)


class Pages:
    """Pages by address."""

    def __init__(self, pages: Mapping[str, Page | Moved]) -> None:
        self.pages = pages
        self.asked: list[str] = []

    async def fetch(self, wanted: Address) -> Page | Moved:
        self.asked.append(wanted.url)
        if wanted.url not in self.pages:
            raise WebFault("offline", f"Nobody answers at {str(wanted.host)!r}.")
        return self.pages[wanted.url]


class Search:
    """Finds what it is told to, or nothing."""

    host: str = "search.example:443"

    def __init__(self, found: Sequence[Found] = (), fault: WebFault | None = None) -> None:
        self.found = found
        self.fault = fault
        self.asked: list[tuple[str, int]] = []

    async def find(self, query: str, count: int) -> Sequence[Found]:
        self.asked.append((query, count))
        if self.fault is not None:
            raise self.fault
        return self.found
