"""Pages: fetched through the guard, redirects and all, and made readable."""

from __future__ import annotations

import asyncio
import ssl
from http import HTTPStatus
from typing import Final, Literal

import aiohttp

from greenroom.adapters.web.body import body_of
from greenroom.adapters.web.charsets import text_of
from greenroom.adapters.web.exchange import Request, answered
from greenroom.adapters.web.guard import WEB, Guard
from greenroom.adapters.web.kinds import kind_of
from greenroom.adapters.web.limits import LIMITS, Limits
from greenroom.adapters.web.parser import Reading, parsed
from greenroom.core.base.records import record
from greenroom.core.ports.web import Address, BadAddress, Moved, Page, WebFault, led_to

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@record
class Body:
    """What came, and what its server says of it."""

    data: bytes
    said: str
    charset: str | None


class Fetching:
    """Fetches pages. Of one nothing is kept for the next."""

    def __init__(self, guard: Guard, limits: Limits = LIMITS, secure: ssl.SSLContext | None = None) -> None:
        self._guard = guard
        self._limits = limits
        self._secure = secure
        self._parsers = asyncio.Semaphore(limits.parsers)

    async def fetch(self, wanted: Address) -> Page | Moved:
        """The page at an address, or where it has moved to."""
        try:
            async with asyncio.timeout(self._limits.total):
                here, found = await self._followed(wanted)
        except TimeoutError:
            raise WebFault("slow", f"It did not come to an end within {self._limits.total:g} s.") from None
        return await self._read(here, found) if isinstance(found, Body) else Moved(url=wanted.url, to=found.url)

    async def _followed(self, wanted: Address) -> tuple[Address, Body | Address]:
        """Where it was found in the end, and what; another address when it has left the host."""
        here = wanted
        for _ in range(self._limits.redirects + 1):
            found = await self._looked(here)
            if isinstance(found, Body) or not _same_site(wanted, found):
                return here, found
            here = found
        raise WebFault("redirects", f"It leads on and on: more than {self._limits.redirects} redirects.")

    async def _looked(self, here: Address) -> Body | Address:
        async with answered(Request(address=here), self._guard, self._limits, self._secure) as response:
            if response.status in REDIRECTS and "Location" in response.headers:
                return _next(here, response.headers["Location"])
            if response.status != HTTPStatus.OK:
                raise WebFault("status", f"{here.url} answered {_status(response.status)}.")
            return Body(data=await body_of(response, self._limits), said=_said(response), charset=response.charset)

    async def _read(self, here: Address, body: Body) -> Page:
        kind = kind_of(body.said, body.data)
        if kind == "pdf":
            read = await self._parsed("pdf", body.data, here)
        else:
            text = await asyncio.to_thread(text_of, body.data, body.charset)
            read = Reading(text=text) if kind == "text" else await self._parsed("html", text.encode(), here)
        size = len(body.data)
        return Page(url=here.url, text=read.text, kind=kind, title=read.title, size=size, note=read.note)

    async def _parsed(self, kind: Literal["html", "pdf"], data: bytes, here: Address) -> Reading:
        async with self._parsers:
            return await parsed(kind, data, here.url, seconds=self._limits.reading)


def _said(response: aiohttp.ClientResponse) -> str:
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _next(here: Address, location: str) -> Address:
    try:
        # Servers send UTF-8 here, although a header has only bytes.
        return led_to(here, location.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    except BadAddress as why:
        raise WebFault("redirects", f"{here.url} leads to where nobody can go. {why}") from None


def _same_site(one: Address, other: Address) -> bool:
    """Who was asked about a host was not asked about another one; with or without www. is the same, by custom."""
    ports = one.host.port == other.host.port or {one.host.port, other.host.port} <= WEB
    return ports and one.host.name.removeprefix("www.") == other.host.name.removeprefix("www.")


def _status(code: int) -> str:
    try:
        return f"{code} ({HTTPStatus(code).phrase})"
    except ValueError:
        return str(code)
