"""Fetch pages through the address filter, follow redirects, and convert them to text.

Each connection goes to an address that the filter has checked. No proxy of the environment, cookie or `.netrc` password
is used. Bodies are limited in size, also when decompressed, and in time.
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

from greenroom.adapters.web.address_filter import WEB_PORTS, AddressFilter, CheckedHost, describe_error
from greenroom.core.base.records import record
from greenroom.core.ports.web import BadAddress, Redirect, WebAddress, WebFault, WebPage, resolve_redirect

MEGABYTE: Final = 1_000_000


@record
class FetchLimits:
    """Limits in seconds for connecting, without data and in total, and for a body in bytes, compressed or not.

    `reading` limits a parser in seconds, `parsers` how many run in parallel.
    """

    connect: float = 10.0
    idle: float = 10.0
    total: float = 30.0
    size: int = 10 * MEGABYTE
    redirects: int = 5
    reading: float = 20.0
    parsers: int = 4


FETCH_LIMITS: Final = FetchLimits()


USER_AGENT: Final = "Mozilla/5.0 (compatible; greenroom)"
DEFAULT_HEADERS: Final[Mapping[str, str]] = {
    "User-Agent": USER_AGENT,
    "Accept": "text/html,application/xhtml+xml,application/pdf;q=0.9,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5",
    "Accept-Encoding": "gzip",
    "Accept-Language": "en,zh;q=0.9,*;q=0.5",
}


@record
class WebRequest:
    address: WebAddress
    method: str = "GET"
    headers: Mapping[str, str] = {}
    body: bytes | None = None


@asynccontextmanager
async def open_response(
    request: WebRequest, address_filter: AddressFilter, limits: FetchLimits, ssl_context: ssl.SSLContext | None = None
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Send a request and yield the response before its body is read. Raise `WebFault` if it fails."""
    address = request.address
    checked = await address_filter.check(address.host)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=limits.connect, sock_read=limits.idle)
    try:
        async with (
            aiohttp.ClientSession(
                connector=_make_connector(checked, ssl_context),
                timeout=timeout,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            ) as session,
            session.request(
                request.method,
                URL(address.url, encoded=True),
                headers={**DEFAULT_HEADERS, **request.headers},
                data=request.body,
                allow_redirects=False,
            ) as response,
        ):
            yield response
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise _translate_error(error, str(address.host), limits) from None


def _make_connector(checked: CheckedHost, ssl_context: ssl.SSLContext | None) -> aiohttp.TCPConnector:
    """Return a connector that resolves and connects only to checked addresses."""

    def open_socket(info: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
        return checked.open(str(info[4][0]))

    return aiohttp.TCPConnector(
        resolver=CheckedResolver(checked),
        use_dns_cache=False,
        force_close=True,
        socket_factory=open_socket,
        ssl=True if ssl_context is None else ssl_context,
    )


class CheckedResolver(AbstractResolver):
    """A resolver for one checked host."""

    def __init__(self, checked: CheckedHost) -> None:
        self._checked = checked

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if host != self._checked.host.name:
            raise OSError(f"{host!r} was not checked")
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._checked.addresses
        ]

    async def close(self) -> None:
        """Do nothing."""


def _translate_error(error: Exception, place: str, limits: FetchLimits) -> WebFault:
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            return WebFault("broken", f"{place!r} cannot prove who it is: its certificate or its TLS is not in order.")
        case aiohttp.ServerTimeoutError() | TimeoutError():
            return WebFault("slow", f"{place!r} did not answer within {limits.idle:g} s.")
        case aiohttp.ClientConnectorError():
            return WebFault("offline", f"No server answers at {place!r} ({describe_error(error.os_error)}).")
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError() | ConnectionError():
            return WebFault("broken", f"{place!r} broke off before all of it was there. Try again later.")
        case _:
            return WebFault("broken", f"{place!r} does not answer as a web server does.")


async def read_body(response: aiohttp.ClientResponse, limits: FetchLimits) -> bytes:
    """Read the whole decompressed body. Raise `WebFault` if it is too large. The caller limits the time."""
    too_large = WebFault(
        "too_large", f"It is larger than {limits.size / MEGABYTE:g} MB, which is the most that is taken."
    )
    if (response.content_length or 0) > limits.size:
        raise too_large
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > limits.size:
            raise too_large
    return bytes(body)


PARSER_PROGRAM: Final = ("-I", "-m", "greenroom.adapters.web.page_parser")
UNREADABLE: Final = "It cannot be read: its parser needed too much time or memory for it, or gave up."


@record
class ParsedPage:
    """The text, title and note of a parsed document."""

    text: str
    title: str = ""
    note: str = ""


async def parse_document(
    kind: Literal["html", "pdf"], data: bytes, url: str, *, seconds: float, program: Sequence[str] = PARSER_PROGRAM
) -> ParsedPage:
    """Parse a page or PDF in a separate process. Raise `WebFault` if that fails or takes too long."""
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
            output, _ = await child.communicate(data)
    except TimeoutError:
        raise WebFault("broken", UNREADABLE) from None
    finally:
        if child.returncode is None:
            child.kill()
            await asyncio.shield(asyncio.ensure_future(child.wait()))
    if child.returncode != 0:
        raise WebFault("broken", UNREADABLE)
    answer = json.loads(output)
    if "error" in answer:
        raise WebFault("broken", answer["error"])
    return ParsedPage(text=answer["text"], title=answer["title"], note=answer["note"])


DocumentKind = Literal["html", "pdf", "text"]

_HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT_TYPE: Final = re.compile(
    r"text/.+|(application|image)/([\w.+-]+\+)?(xml|json|yaml|toml)|message/.+"
    r"|application/(x-)?(javascript|ecmascript|ndjson|jsonlines|sh|python|tex|yaml|sql|graphql|rtf)"
)
_PDF_TYPES: Final = frozenset({"application/pdf", "application/x-pdf"})
_UNSTATED_TYPES: Final = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/download"})
_HTML_TAG: Final = re.compile(
    rb"\s*+(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s++html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
"""Marks at the start of UTF-16 text, which contains many zero bytes."""


def detect_kind(content_type: str, data: bytes) -> DocumentKind:
    """Return the kind of a document. Raise `WebFault` for images, archives and programs."""
    begin = data[:SNIFF_BYTES]
    if begin.lstrip()[:5] == b"%PDF-":
        return "pdf"
    if content_type in _PDF_TYPES:
        raise WebFault("broken", "Its server calls it a PDF, but it is not a PDF.")
    if (
        content_type not in _UNSTATED_TYPES
        and content_type not in _HTML_TYPES
        and not _TEXT_TYPE.fullmatch(content_type)
    ):
        raise _make_kind_fault(content_type)
    if b"\0" in begin and not begin.startswith(_UTF16_MARKS):
        raise _make_kind_fault(content_type)
    if content_type in _HTML_TYPES or (content_type in {*_UNSTATED_TYPES, "text/plain"} and _HTML_TAG.match(begin)):
        return "html"
    return "text"


def _make_kind_fault(content_type: str) -> WebFault:
    what = f"of the type {content_type[:80]!r}" if content_type else "not text"
    return WebFault("kind", f"It is {what}. Pages, PDFs and texts can be read; images, archives and programs cannot.")


SNIFF_BYTES: Final = 4096
FALLBACK_CHARSET: Final = "cp1252"
_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CHARSET_IN_PAGE: Final = re.compile(rb"""(?:charset|encoding)\s*+=\s*+["']?+\s*+([\w.:-]{2,40})""", re.IGNORECASE)
_TEXT_CODEC: Final = re.compile(
    r"utf-(8|16|16-le|16-be|32)|iso8859-\d+|cp\d+|koi8-[ru]|mac-\w+|gb\w+|big5\w*|euc_\w+|shift_jis\w*|iso2022_jp\w*|johab|hz"
)
"""Codecs for text; Python has others too."""

_WIDER_CODECS: Final = {
    "iso8859-1": FALLBACK_CHARSET,
    "ascii": FALLBACK_CHARSET,
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "utf-7": "utf-8",
}
"""Charsets that browsers replace by a wider one. UTF-7 is used only for attacks."""


def decode_text(data: bytes, charset: str | None) -> str:
    """Decode text with the first charset that fits. If none does, mark invalid characters."""
    names = list(dict.fromkeys(_guess_charsets(data, charset)))
    for name in names:
        try:
            return data.decode(name)
        except UnicodeDecodeError:
            continue
    return data.decode(names[0], errors="replace")


def _guess_charsets(data: bytes, charset: str | None) -> Iterator[str]:
    yield from (name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark))
    in_page = _CHARSET_IN_PAGE.search(data[:SNIFF_BYTES])
    for candidate in (charset, in_page[1].decode("ascii") if in_page else None):
        if name := _find_codec(candidate):
            yield name
    yield "utf-8"
    yield FALLBACK_CHARSET


def _find_codec(name: str | None) -> str:
    """Return the name of a text codec; empty if it is unknown."""
    try:
        codec = codecs.lookup((name or "").strip("\"' "))
    except (LookupError, ValueError):
        return ""
    return _WIDER_CODECS.get(codec.name, codec.name if _TEXT_CODEC.fullmatch(codec.name) else "")


REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})


@record
class ResponseBody:
    """The body of a response with its declared type and charset."""

    data: bytes
    content_type: str
    charset: str | None


class WebPageFetcher:
    """Fetches pages. Nothing is kept between two pages."""

    def __init__(
        self,
        address_filter: AddressFilter,
        limits: FetchLimits = FETCH_LIMITS,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._address_filter = address_filter
        self._limits = limits
        self._ssl_context = ssl_context
        self._parsers = asyncio.Semaphore(limits.parsers)

    async def fetch(self, wanted: WebAddress) -> WebPage | Redirect:
        """Return the page at an address, or the address on another host to which it moved."""
        try:
            async with asyncio.timeout(self._limits.total):
                here, result = await self._follow(wanted)
        except TimeoutError:
            raise WebFault("slow", f"It did not come to an end within {self._limits.total:g} s.") from None
        if isinstance(result, ResponseBody):
            return await self._read_page(here, result)
        return Redirect(url=wanted.url, to=result.url)

    async def _follow(self, wanted: WebAddress) -> tuple[WebAddress, ResponseBody | WebAddress]:
        """Follow redirects. Return the last address and its body, or the first address on another host."""
        here = wanted
        for _ in range(self._limits.redirects + 1):
            result = await self._request(here)
            if isinstance(result, ResponseBody) or not _is_same_site(wanted, result):
                return here, result
            here = result
        raise WebFault("redirects", f"It leads on and on: more than {self._limits.redirects} redirects.")

    async def _request(self, here: WebAddress) -> ResponseBody | WebAddress:
        async with open_response(
            WebRequest(address=here), self._address_filter, self._limits, self._ssl_context
        ) as response:
            if response.status in REDIRECT_STATUSES and "Location" in response.headers:
                return _resolve_redirect(here, response.headers["Location"])
            if response.status != HTTPStatus.OK:
                raise WebFault("status", f"{here.url} answered {_describe_status(response.status)}.")
            content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            return ResponseBody(
                data=await read_body(response, self._limits), content_type=content_type, charset=response.charset
            )

    async def _read_page(self, here: WebAddress, body: ResponseBody) -> WebPage:
        kind = detect_kind(body.content_type, body.data)
        if kind == "pdf":
            parsed_page = await self._parse("pdf", body.data, here)
        else:
            text = await asyncio.to_thread(decode_text, body.data, body.charset)
            parsed_page = ParsedPage(text=text) if kind == "text" else await self._parse("html", text.encode(), here)
        size = len(body.data)
        return WebPage(
            url=here.url, text=parsed_page.text, kind=kind, title=parsed_page.title, size=size, note=parsed_page.note
        )

    async def _parse(self, kind: Literal["html", "pdf"], data: bytes, here: WebAddress) -> ParsedPage:
        async with self._parsers:
            return await parse_document(kind, data, here.url, seconds=self._limits.reading)


def _resolve_redirect(here: WebAddress, location: str) -> WebAddress:
    try:
        # Servers send UTF-8 here, although headers are bytes.
        return resolve_redirect(here, location.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    except BadAddress as why:
        raise WebFault("redirects", f"{here.url} redirects to an invalid address. {why}") from None


def _is_same_site(address: WebAddress, other: WebAddress) -> bool:
    """Return whether two addresses are on the same host, so that one permission covers both. `www.` is ignored."""
    ports = address.host.port == other.host.port or {address.host.port, other.host.port} <= WEB_PORTS
    return ports and address.host.name.removeprefix("www.") == other.host.name.removeprefix("www.")


def _describe_status(code: int) -> str:
    try:
        return f"{code} ({HTTPStatus(code).phrase})"
    except ValueError:
        return str(code)
