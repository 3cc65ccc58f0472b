"""Raw HTTP responses, byte by byte, including those that no HTTP library would send."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from http import HTTPStatus
from itertools import cycle
from typing import Final, Literal

from greenroom.core.base.records import encode, record

JSON: Final = "application/json"
SSE: Final = "text/event-stream; charset=utf-8"
HTML: Final = "text/html; charset=utf-8"
LAST_CHUNK: Final = b"0\r\n\r\n"
BEFORE_RESET: Final = 0.02
"""Seconds in which a client can read before the reset, which may discard unread data."""

TURNS: Final = 2
"""Loop iterations until a client on the same loop has read what was written."""

RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: closing sends RST."""

Headers = tuple[tuple[str, str], ...]
Ending = Literal["keep", "close", "reset", "hang"]


@record
class Wire:
    """A response: its head, the pieces of its body with `pace` seconds before each, `endless` repeated forever, then
    its end.

    `keep` leaves the connection open for the next request. `tear` splits the body into pieces of this many bytes.
    """

    head: bytes = b""
    pieces: tuple[bytes, ...] = ()
    chunked: bool = False
    pace: float = 0.0
    tear: int = 0
    endless: tuple[bytes, ...] = ()
    ending: Ending = "keep"


def whole(body: bytes, *, status: int = 200, kind: str = JSON, headers: Headers = ()) -> Wire:
    """Return a response with a content length."""
    return Wire(head=head(status, kind, (*headers, ("Content-Length", str(len(body))))), pieces=(body,))


def told(data: object, *, status: int = 200, headers: Headers = ()) -> Wire:
    """Return a JSON response."""
    return whole(encode(data), status=status, headers=headers)


def streamed(pieces: Iterable[bytes], *, pace: float = 0.0, kind: str = SSE, ending: Ending = "keep") -> Wire:
    """Return a chunked response. It ends correctly only if the connection is kept."""
    begin = head(200, kind, (("Transfer-Encoding", "chunked"), ("Cache-Control", "no-cache")))
    return Wire(head=begin, pieces=tuple(pieces), chunked=True, pace=pace, ending=ending)


def until_closed(pieces: Iterable[bytes], *, kind: str = SSE) -> Wire:
    """Return a response that ends with the connection, so that its completeness is unknown."""
    return Wire(head=head(200, kind, (("Connection", "close"),)), pieces=tuple(pieces), ending="close")


@lru_cache(maxsize=256)
def head(status: int, kind: str, headers: Headers = ()) -> bytes:
    """Return status line and headers."""
    known = {one.value: one.phrase for one in HTTPStatus}
    lines = [f"HTTP/1.1 {status} {known.get(status, 'Unknown')}", f"Content-Type: {kind}"]
    return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers), "", ""]).encode("latin-1")


def torn(pieces: Iterable[bytes], size: int) -> list[bytes]:
    """Return the same bytes in pieces of this size."""
    body = b"".join(pieces)
    return [body[start : start + size] for start in range(0, len(body), size)]


def framed(wire: Wire, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces with HTTP framing."""
    if not wire.chunked:
        yield from pieces
        return
    for piece in pieces:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    if wire.ending == "keep" and not wire.endless:
        yield LAST_CHUNK


async def play(wire: Wire, transport: asyncio.Transport, tear: int = 0) -> bool:
    """Write the response. Return True if the connection may serve another request. An endless response waits for
    cancellation."""
    tear = tear or wire.tear
    if not tear and not wire.pace:
        transport.write(b"".join((wire.head, *framed(wire, wire.pieces))))
    else:
        transport.write(wire.head)
        for piece in framed(wire, torn(wire.pieces, tear) if tear else wire.pieces):
            await rest(wire.pace)
            transport.write(piece)
    for piece in cycle(wire.endless):
        transport.write(next(framed(wire, (piece,))))
        await rest(wire.pace)
    return await end(wire.ending, transport)


async def end(ending: Ending, transport: asyncio.Transport) -> bool:
    """Keep, close, reset or hold the connection."""
    if ending == "hang":
        await asyncio.Event().wait()
    if ending == "reset":
        await rest(BEFORE_RESET)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        transport.abort()
    return ending == "keep"


async def rest(seconds: float) -> None:
    """Sleep; for 0, let a client on this loop read what was written."""
    for _ in range(TURNS):
        await asyncio.sleep(0 if seconds <= 0 else seconds / TURNS)
