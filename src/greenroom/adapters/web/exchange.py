"""One request and its answer, over a connection to an address that the guard has checked.

No proxy of the environment is used, no cookie kept, no redirect followed, no password of a file sent. A body is
unpacked as far as it is small enough and comes quickly enough.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from greenroom.adapters.web.guard import Checked, Guard, why_of
from greenroom.core.base.records import record
from greenroom.core.ports.web import Address, WebFault

MILLION: Final = 1_000_000


@record
class Limits:
    """Seconds until a connection stands, of silence, and for all of it; bytes of a body, packed or not.

    Who sends fewer than `floor` bytes a second has `grace` seconds. `reading` is how long a parser may take, and
    `parsers` how many are at work at once.
    """

    connect: float = 10.0
    idle: float = 10.0
    total: float = 30.0
    size: int = 10 * MILLION
    floor: int = 500
    grace: float = 8.0
    redirects: int = 5
    reading: float = 20.0
    parsers: int = 4


LIMITS: Final = Limits()


AGENT: Final = "Mozilla/5.0 (compatible; greenroom)"
PLAIN: Final[Mapping[str, str]] = {
    "User-Agent": AGENT,
    "Accept": "text/html,application/xhtml+xml,application/pdf;q=0.9,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5",
    "Accept-Encoding": "gzip",
    "Accept-Language": "en,zh;q=0.9,*;q=0.5",
}


@record
class Request:
    """What is asked for."""

    address: Address
    method: str = "GET"
    headers: Mapping[str, str] = {}
    body: bytes | None = None


@asynccontextmanager
async def answered(
    request: Request, guard: Guard, limits: Limits, secure: ssl.SSLContext | None = None
) -> AsyncIterator[aiohttp.ClientResponse]:
    """The answer to a request, its body not yet read; `WebFault` when there is none. It ends with the block."""
    wanted = request.address
    checked = await guard.check(wanted.host)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=limits.connect, sock_read=limits.idle)
    try:
        async with (
            aiohttp.ClientSession(
                connector=_connector(checked, secure),
                timeout=timeout,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            ) as session,
            session.request(
                request.method,
                URL(wanted.url, encoded=True),
                headers={**PLAIN, **request.headers},
                data=request.body,
                allow_redirects=False,
            ) as response,
        ):
            yield response
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise _fault(error, str(wanted.host), limits) from None


def _connector(checked: Checked, secure: ssl.SSLContext | None) -> aiohttp.TCPConnector:
    """Resolves to what was checked, and makes sockets to nothing else."""

    def made(info: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
        return checked.open(str(info[4][0]))

    return aiohttp.TCPConnector(
        resolver=Known(checked),
        use_dns_cache=False,
        force_close=True,
        socket_factory=made,
        ssl=True if secure is None else secure,
    )


class Known(AbstractResolver):
    """Knows one host."""

    def __init__(self, checked: Checked) -> None:
        self._checked = checked

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses that were checked."""
        if host != self._checked.host.name:
            raise OSError(f"nobody has checked {host!r}")
        return [
            ResolveResult(
                hostname=host,
                host=str(one),
                port=port,
                family=socket.AF_INET if one.version == 4 else socket.AF_INET6,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for one in self._checked.addresses
        ]

    async def close(self) -> None:
        """Nothing is held."""


def _fault(error: Exception, place: str, limits: Limits) -> WebFault:
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            return WebFault("broken", f"{place!r} cannot prove who it is: its certificate or its TLS is not in order.")
        case aiohttp.ServerTimeoutError() | TimeoutError():
            return WebFault("slow", f"{place!r} did not answer within {limits.idle:g} s.")
        case aiohttp.ClientConnectorError():
            return WebFault("offline", f"Nobody answers at {place!r} ({why_of(error.os_error)}).")
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError() | ConnectionError():
            return WebFault("broken", f"{place!r} broke off before all of it was there. Try again later.")
        case _:
            return WebFault("broken", f"{place!r} does not answer as a web server does.")


async def body_of(response: aiohttp.ClientResponse, limits: Limits) -> bytes:
    """All of it, unpacked; `WebFault` when it is too large or too slow."""
    too_large = WebFault(
        "too_large", f"It is larger than {limits.size / MILLION:g} MB, which is the most that is taken."
    )
    if (response.content_length or 0) > limits.size:
        raise too_large
    body, clock = bytearray(), asyncio.get_running_loop().time
    begun = clock()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > limits.size:
            raise too_large
        passed = clock() - begun
        if passed > limits.grace and len(body) < limits.floor * passed:
            raise WebFault("slow", f"It sends less than {limits.floor} bytes a second. Try again later.")
    return bytes(body)
