"""The web: fetching pages and searching. No third-party type crosses this port.

Web content is untrusted: it is data to its reader, never an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, Protocol
from urllib.parse import quote

from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.hosts import BadHost, Host, parse_host
from greenroom.core.base.records import evolve, record

Scheme = Literal["http", "https"]
WebReason = Literal[
    "barred",  # an address that is never fetched
    "offline",  # the host has no address, or does not answer
    "slow",
    "too_large",
    "kind",  # not text: an image, an archive …
    "status",  # the server answered with an error
    "redirects",
    "broken",  # the response cannot be decoded
    "setup",  # something has to be installed or configured first
]

DEFAULT_PORTS: Final[dict[Scheme, int]] = {"http": 80, "https": 443}
MAX_URL_CHARS: Final = 4096
"""Maximum characters of an address."""

_URL: Final = re.compile(r"(?P<scheme>https?)://(?P<place>[^/?#]*)(?P<target>[^#]*)(?:#.*)?", re.IGNORECASE | re.DOTALL)
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_SAFE_CHARACTERS: Final = "%/?:@!$&'()*+,;=~-._[]|"


class BadAddress(ModelFault):
    """The address is invalid. The message says why."""


class WebFault(WorldFault):
    """A page or search result cannot be fetched. `reason` is for programs, the message for its reader."""

    def __init__(self, reason: WebReason, why: str) -> None:
        super().__init__(why)
        self.reason: WebReason = reason


@record
class WebAddress:
    """The address of a page. `host` always has a port; `target` is the path with the query, as sent."""

    scheme: Scheme
    host: Host
    target: str

    @property
    def url(self) -> str:
        """The address as people write it, without a default port."""
        usual = self.host.port == DEFAULT_PORTS[self.scheme]
        host = evolve(self.host, port=0) if usual else self.host
        return f"{self.scheme}://{host}{self.target}"


def parse_address(url: str) -> WebAddress:
    """Parse an address once, so that the checked address is the dialled one. Raise `BadAddress` if it is invalid."""
    text = url.strip()
    if len(text) > MAX_URL_CHARS:
        raise BadAddress("ports.address_too_long", text=text[:100], max_url_chars=MAX_URL_CHARS)
    if any(character < " " or character == "\x7f" for character in text):
        raise BadAddress("ports.address_control_characters", text=text[:200])
    parts = _URL.fullmatch(text)
    if parts is None:
        raise BadAddress("ports.address_not_http", text=text[:200])
    scheme: Scheme = "https" if parts["scheme"].lower() == "https" else "http"
    host = _parse_host(parts["place"])
    target = quote(parts["target"], safe=_SAFE_CHARACTERS)
    return WebAddress(
        scheme=scheme,
        host=host if host.port else evolve(host, port=DEFAULT_PORTS[scheme]),
        target=target if target.startswith("/") else f"/{target}",
    )


def resolve_redirect(here: WebAddress, location: str) -> WebAddress:
    """Return the target of a redirect, checked like every other address."""
    target = location.strip()
    if _SCHEME.match(target):
        return parse_address(target)
    if target.startswith("//"):
        return parse_address(f"{here.scheme}:{target}")
    origin, path = evolve(here, target="").url, here.target.partition("?")[0]
    if target.startswith("/"):
        return parse_address(origin + target)
    if target.startswith("?"):
        return parse_address(f"{origin}{path}{target}")
    return parse_address(f"{origin}{path.rpartition('/')[0]}/{target}")


def _parse_host(text: str) -> Host:
    if "@" in text:
        raise BadAddress("ports.address_with_login")
    try:
        return parse_host(text if text.isascii() else _encode_idna(text))
    except BadHost as why:
        raise BadAddress(f"The host {text[:200]!r} {why}.") from None


def _encode_idna(text: str) -> str:
    """Return the ASCII form of an international host name, as browsers do."""
    import idna

    name, colon, port = text.rpartition(":") if text[-1:].isdigit() and ":" in text else (text, "", "")
    try:
        return f"{idna.encode(name, uts46=True, std3_rules=True).decode()}{colon}{port}"
    except idna.IDNAError:
        raise BadHost("is not a valid host name") from None


@record
class WebPage:
    """A fetched page as text. `url` is its address after redirects. `note` says what is missing. `retrieved` is when
    it was fetched, in milliseconds; 0 means now."""

    url: str
    text: str
    kind: Literal["html", "pdf", "text"]
    title: str = ""
    size: int = 0
    note: str = ""
    retrieved: int = 0


@record
class Redirect:
    """A redirect to another host, which needs a policy decision first."""

    url: str
    to: str


class PageFetcher(Protocol):
    """Fetches pages. A failure raises `WebFault`."""

    async def fetch(self, address: WebAddress) -> WebPage | Redirect:
        """Fetch a page. Redirects on the same host are followed; each is checked."""


@record
class SearchHit:
    """A page that a search found."""

    title: str
    url: str
    snippet: str = ""


class SearchEngine(Protocol):
    """Searches the web. A failure raises `WebFault`, which says what to do."""

    @property
    def host(self) -> str:
        """The host it queries, with the port; empty if it is not set up."""

    async def find(self, query: str, count: int) -> Sequence[SearchHit]:
        """Return the best pages for a query, at most `count`."""
