"""The head of a request to a proxy, read strictly: what two programs could read in two ways is refused."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Sequence
from typing import Final

from greenroom.core.base.hosts import BadHost, Host, host
from greenroom.core.base.records import record
from greenroom.core.ports.web import BadAddress, address

USER: Final = "greenroom"
_FIRST: Final = re.compile(r"([A-Z]{3,20}) (\S+) HTTP/1\.[01]")
_HEADER: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)")
_LENGTH: Final = re.compile(r"[0-9]{1,15}")
_HOP: Final = frozenset(
    {
        *("connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "trailer", "upgrade", "host"),
    }
)

Headers = Sequence[tuple[str, str]]


class BadHead(Exception):
    """What a client is answered whose request cannot be taken."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


@record
class Head:
    """What a client wants. Of a tunnel only `host` is known; of a request what is sent on, and how long its body is."""

    host: Host
    tunnel: bool
    sent: bytes = b""
    body: int = 0


def head_of(raw: bytes, token: str = "") -> Head:
    """Read it; `BadHead` for what is not exactly a request, or comes without the token."""
    first, *lines = raw.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    asked = _FIRST.fullmatch(first)
    if asked is None:
        raise BadHead("400 Bad Request", "That is no request to a proxy.")
    headers = [_header(line) for line in lines]
    if token:
        _refuse_stranger(headers, token)
    method, target = asked[1], asked[2]
    if method == "CONNECT":
        return Head(host=_place(target), tunnel=True)
    return _plain(method, target, headers)


def _plain(method: str, target: str, headers: Headers) -> Head:
    try:
        wanted = address(target)
    except BadAddress as why:
        raise BadHead("400 Bad Request", str(why)) from None
    if wanted.scheme != "http":
        raise BadHead("400 Bad Request", "An https address is reached with CONNECT.")
    named = {one.strip().lower() for name, value in headers if name == "connection" for one in value.split(",")}
    kept = [(name, value) for name, value in headers if name not in _HOP and name not in named]
    place = wanted.url.partition("://")[2].partition("/")[0]
    lines = [f"{method} {wanted.target} HTTP/1.1", f"Host: {place}", *(f"{name}: {value}" for name, value in kept)]
    sent = "\r\n".join((*lines, "Connection: close", "", "")).encode("latin-1")
    return Head(host=wanted.host, tunnel=False, sent=sent, body=_length(headers))


def _header(line: str) -> tuple[str, str]:
    read = _HEADER.fullmatch(line)
    if read is None:
        raise BadHead("400 Bad Request", "A header of the request is none.")
    return read[1].lower(), read[2].strip(" \t")


def _length(headers: Headers) -> int:
    """How long the body is. One without a length could hide a second request."""
    if any(name == "transfer-encoding" for name, _ in headers):
        raise BadHead("411 Length Required", "Send the body with its Content-Length.")
    said = {value for name, value in headers if name == "content-length"}
    if not said:
        return 0
    if len(said) > 1 or not all(map(_LENGTH.fullmatch, said)):
        raise BadHead("400 Bad Request", "The length of the body is not clear.")
    return int(said.pop())


def _place(target: str) -> Host:
    try:
        asked = host(target)
    except BadHost as why:
        raise BadHead("400 Bad Request", f"The host {target[:200]!r} {why}.") from None
    if not asked.port:
        raise BadHead("400 Bad Request", f"The host {target[:200]!r} comes without a port.")
    return asked


def _refuse_stranger(headers: Headers, token: str) -> None:
    wanted = f"Basic {base64.b64encode(f'{USER}:{token}'.encode()).decode()}"
    said = [value for name, value in headers if name == "proxy-authorization"]
    if len(said) != 1 or not hmac.compare_digest(said[0].encode("latin-1"), wanted.encode()):
        raise BadHead("407 Proxy Authentication Required", "This proxy is for those who have its token.")
