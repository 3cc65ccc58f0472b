"""The web: pages that are fetched, and a search. No third-party type crosses this port.

Whatever comes from there is a stranger's word: data to whoever reads it, never an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, Protocol
from urllib.parse import quote

from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.hosts import BadHost, Host, host
from greenroom.core.base.records import evolve, record

Scheme = Literal["http", "https"]
WebReason = Literal[
    "barred",  # an address that nobody is led to
    "offline",  # it has no address, or nobody answers there
    "slow",
    "too_large",
    "kind",  # not text: an image, an archive …
    "status",  # it answered with an error
    "redirects",
    "broken",  # what it sent cannot be read
    "setup",  # something has to be installed or set first
]

PORTS: Final[dict[Scheme, int]] = {"http": 80, "https": 443}
LONGEST: Final = 4096
"""Characters of an address."""

_URL: Final = re.compile(r"(?P<scheme>https?)://(?P<place>[^/?#]*)(?P<target>[^#]*)(?:#.*)?", re.IGNORECASE | re.DOTALL)
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_AS_IT_IS: Final = "%/?:@!$&'()*+,;=~-._[]|"


class BadAddress(ModelFault):
    """What is wrong with an address."""


class WebFault(WorldFault):
    """Something that the web would not give. `reason` is for programs, the sentence for who reads it."""

    def __init__(self, reason: WebReason, why: str) -> None:
        super().__init__(why)
        self.reason: WebReason = reason


@record
class Address:
    """Where a page is. `host` always has a port; `target` is the path with the query, as it is sent."""

    scheme: Scheme
    host: Host
    target: str

    @property
    def url(self) -> str:
        """As people write it."""
        usual = self.host.port == PORTS[self.scheme]
        place = evolve(self.host, port=0) if usual else self.host
        return f"{self.scheme}://{place}{self.target}"


def address(url: str) -> Address:
    """The address that is meant, read once: what is decided about is dialled. `BadAddress` says what is wrong."""
    told = url.strip()
    if len(told) > LONGEST:
        raise BadAddress(f"{told[:100]!r}… is no address: it is longer than {LONGEST} characters.")
    if any(one < " " or one == "\x7f" for one in told):
        raise BadAddress(f"{told[:200]!r} is no address: it has control characters in it.")
    parts = _URL.fullmatch(told)
    if parts is None:
        raise BadAddress(
            f"{told[:200]!r} is no address. Only http:// and https:// are fetched: https://example.org/page."
        )
    scheme: Scheme = "https" if parts["scheme"].lower() == "https" else "http"
    place = _host(parts["place"])
    target = quote(parts["target"], safe=_AS_IT_IS)
    return Address(
        scheme=scheme,
        host=place if place.port else evolve(place, port=PORTS[scheme]),
        target=target if target.startswith("/") else f"/{target}",
    )


def led_to(here: Address, location: str) -> Address:
    """Where a redirect leads, seen from here; it is checked like every other address."""
    told = location.strip()
    if _SCHEME.match(told):
        return address(told)
    if told.startswith("//"):
        return address(f"{here.scheme}:{told}")
    origin, path = evolve(here, target="").url, here.target.partition("?")[0]
    if told.startswith("/"):
        return address(origin + told)
    if told.startswith("?"):
        return address(f"{origin}{path}{told}")
    return address(f"{origin}{path.rpartition('/')[0]}/{told}")


def _host(place: str) -> Host:
    if "@" in place:
        raise BadAddress("The address has a user's name or a password in it. Leave out what stands before the @.")
    try:
        return host(place if place.isascii() else _ascii(place))
    except BadHost as why:
        raise BadAddress(f"The host {place[:200]!r} {why}.") from None


def _ascii(place: str) -> str:
    """The one name that an international one stands for, as browsers have it."""
    import idna

    name, colon, port = place.rpartition(":") if place[-1:].isdigit() and ":" in place else (place, "", "")
    try:
        return f"{idna.encode(name, uts46=True, std3_rules=True).decode()}{colon}{port}"
    except idna.IDNAError:
        raise BadHost("is no name that a host can have") from None


@record
class Page:
    """What is at an address, as text; `url` is where it was found in the end. `note` says what is less than it could
    be."""

    url: str
    text: str
    kind: Literal["html", "pdf", "text"]
    title: str = ""
    size: int = 0
    note: str = ""


@record
class Moved:
    """It is on another host: somebody has to decide about that one first."""

    url: str
    to: str


class Pages(Protocol):
    """Something that fetches pages. What cannot be had is a `WebFault`."""

    async def fetch(self, wanted: Address) -> Page | Moved:
        """The page. Redirects are followed as long as they stay on the host, and checked each."""


@record
class Found:
    """A page that a search has found."""

    title: str
    url: str
    snippet: str = ""


class Search(Protocol):
    """Something that searches the web. What cannot be done is a `WebFault` that says what to do."""

    @property
    def host(self) -> str:
        """Whom it asks, with the port; empty when it is not set up."""

    async def find(self, query: str, count: int) -> Sequence[Found]:
        """The best pages for this, `count` at most."""
