"""Pages: fetched through the guard, redirects and all, and made readable.

Each connection goes to an address that the guard has checked. No proxy of the environment is used, no cookie kept, no
password of a file sent. A body is unpacked as far as it is small enough and comes quickly enough.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final, Literal

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from greenroom.adapters.web.guard import WEB, Checked, Guard, why_of
from greenroom.core.base.records import record
from greenroom.core.ports.web import Address, BadAddress, Moved, Page, WebFault, led_to

MILLION: Final = 1_000_000


@record
class Limits:
    """Seconds until a connection stands, of silence, and for all of it; bytes of a body, packed or not.

    `reading` is how long a parser may take, and `parsers` how many are at work at once.
    """

    connect: float = 10.0
    idle: float = 10.0
    total: float = 30.0
    size: int = 10 * MILLION
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
    """All of it, unpacked; `WebFault` when it is too large. Who asks gives it only so much time."""
    too_large = WebFault(
        "too_large", f"It is larger than {limits.size / MILLION:g} MB, which is the most that is taken."
    )
    if (response.content_length or 0) > limits.size:
        raise too_large
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > limits.size:
            raise too_large
    return bytes(body)


PROGRAM: Final = ("-I", "-m", "greenroom.adapters.web.parsing")
UNREADABLE: Final = "It cannot be read: its parser needed too much time or memory for it, or gave up."


@record
class Reading:
    """What was read."""

    text: str
    title: str = ""
    note: str = ""


async def parsed(
    kind: Literal["html", "pdf"], data: bytes, url: str, *, seconds: float, program: Sequence[str] = PROGRAM
) -> Reading:
    """What a page or a PDF says; `WebFault` when nothing can be made of it in that time."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *program,
        kind,
        url,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    try:
        async with asyncio.timeout(seconds):
            said, _ = await child.communicate(data)
    except TimeoutError:
        raise WebFault("broken", UNREADABLE) from None
    finally:
        if child.returncode is None:
            child.kill()
            await asyncio.shield(asyncio.ensure_future(child.wait()))
    if child.returncode != 0:
        raise WebFault("broken", UNREADABLE)
    answer = json.loads(said)
    if "error" in answer:
        raise WebFault("broken", answer["error"])
    return Reading(text=answer["text"], title=answer["title"], note=answer["note"])


Kind = Literal["html", "pdf", "text"]

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT: Final = re.compile(
    r"text/.+|(application|image)/([\w.+-]+\+)?(xml|json|yaml|toml)|message/.+"
    r"|application/(x-)?(javascript|ecmascript|ndjson|jsonlines|sh|python|tex|yaml|sql|graphql|rtf)"
)
_PDF: Final = frozenset({"application/pdf", "application/x-pdf"})
_UNSAID: Final = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/download"})
_TAG: Final = re.compile(
    rb"\s*+(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s++html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_KINDS_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
"""A text of two bytes per letter begins with one of these, and is full of zeros."""


def kind_of(said: str, data: bytes) -> Kind:
    """What it is; `WebFault` for what is no text: images, archives, programs."""
    begin = data[:LOOKED_AT]
    if begin.lstrip()[:5] == b"%PDF-":
        return "pdf"
    if said in _PDF:
        raise WebFault("broken", "Its server calls it a PDF, but it is none.")
    if said not in _UNSAID and said not in _HTML and not _TEXT.fullmatch(said):
        raise _refused(said)
    if b"\0" in begin and not begin.startswith(_KINDS_MARKS):
        raise _refused(said)
    return "html" if said in _HTML or (said in {*_UNSAID, "text/plain"} and _TAG.match(begin)) else "text"


def _refused(said: str) -> WebFault:
    what = f"of the type {said[:80]!r}" if said else "no text"
    return WebFault("kind", f"It is {what}. Pages, PDFs and texts can be read; images, archives and programs cannot.")


LOOKED_AT: Final = 4096
LAST: Final = "cp1252"
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_IN_PAGE: Final = re.compile(rb"""(?:charset|encoding)\s*+=\s*+["']?+\s*+([\w.:-]{2,40})""", re.IGNORECASE)
_CHARSET: Final = re.compile(
    r"utf-(8|16|16-le|16-be|32)|iso8859-\d+|cp\d+|koi8-[ru]|mac-\w+|gb\w+|big5\w*|euc_\w+|shift_jis\w*|iso2022_jp\w*|johab|hz"
)
"""Codecs are for many things; these are for text."""

_WIDER: Final = {"iso8859-1": LAST, "ascii": LAST, "gb2312": "gb18030", "gbk": "gb18030", "utf-7": "utf-8"}
"""What is said to be the left is in truth the right, as browsers have it; UTF-7 is only used to deceive."""


def text_of(data: bytes, said: str | None) -> str:
    """The text, in the first charset in which all of it makes sense; what makes none in any is marked."""
    names = list(dict.fromkeys(_names(data, said)))
    for name in names:
        try:
            return data.decode(name)
        except UnicodeDecodeError:
            continue
    return data.decode(names[0], errors="replace")


def _names(data: bytes, said: str | None) -> Iterator[str]:
    yield from (name for mark, name in _MARKS if data.startswith(mark))
    in_page = _IN_PAGE.search(data[:LOOKED_AT])
    for one in (said, in_page[1].decode("ascii") if in_page else None):
        if name := _known(one):
            yield name
    yield "utf-8"
    yield LAST


def _known(name: str | None) -> str:
    """The codec of this name, if it is one for text."""
    try:
        codec = codecs.lookup((name or "").strip("\"' "))
    except (LookupError, ValueError):
        return ""
    return _WIDER.get(codec.name, codec.name if _CHARSET.fullmatch(codec.name) else "")


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
            said = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            return Body(data=await body_of(response, self._limits), said=said, charset=response.charset)

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
