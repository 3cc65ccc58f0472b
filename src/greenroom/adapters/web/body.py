"""The body of an answer, unpacked, as far as it is small enough and comes quickly enough."""

from __future__ import annotations

import asyncio
import zlib
from typing import Final

import aiohttp

from greenroom.adapters.web.limits import MILLION, Limits
from greenroom.core.ports.web import WebFault

PIECE: Final = 2**18
MEMBERS: Final = 64
"""Packed pieces in a row; who sends thousands of tiny ones wants to keep us busy."""

_GZIP: Final = 16 + zlib.MAX_WBITS


async def body_of(response: aiohttp.ClientResponse, limits: Limits) -> bytes:
    """All of it; `WebFault` when it is too large, too slow, or packed in a way that nobody asked for."""
    if (response.content_length or 0) > limits.size:
        raise too_large(limits)
    unpacked, taken = _unpacking(response, limits), 0
    clock = asyncio.get_running_loop().time
    begun = clock()
    async for piece in response.content.iter_any():
        taken += len(piece)
        if taken > limits.size:
            raise too_large(limits)
        unpacked.add(piece)
        passed = clock() - begun
        if passed > limits.grace and taken < limits.floor * passed:
            raise WebFault("slow", f"It sends less than {limits.floor} bytes a second. Try again later.")
    return unpacked.all()


def too_large(limits: Limits) -> WebFault:
    """What is said of too much."""
    return WebFault("too_large", f"It is larger than {limits.size / MILLION:g} MB, which is the most that is taken.")


class Plain:
    """What came is what it is."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        """More of it."""
        self._size += len(piece)
        if self._size > self._limits.size:
            raise too_large(self._limits)
        self._parts.append(piece)

    def all(self) -> bytes:
        """All that came."""
        return b"".join(self._parts)


class Packed(Plain):
    """Unpacks in pieces: what would become too large is not unpacked first."""

    def __init__(self, limits: Limits, bits: int) -> None:
        super().__init__(limits)
        self._bits = bits
        self._zip = zlib.decompressobj(bits)
        self._members = 0

    def add(self, piece: bytes) -> None:
        """More of it; what follows the end of the packed data is another packed piece, as gzip allows. What follows and
        is none is nothing."""
        try:
            while piece and self._members < MEMBERS:
                super().add(self._zip.decompress(piece, PIECE))
                piece = self._zip.unconsumed_tail
                if self._zip.eof:
                    piece = self._zip.unused_data
                    self._members += 1
                    self._zip = zlib.decompressobj(self._bits)
        except zlib.error:
            if not self._members:
                raise WebFault("broken", "What it sent cannot be unpacked.") from None
            self._members = MEMBERS


def _unpacking(response: aiohttp.ClientResponse, limits: Limits) -> Plain:
    said = response.headers.getall("Content-Encoding", [])
    match ",".join(said).strip().lower():
        case "" | "identity":
            return Plain(limits)
        case "gzip" | "x-gzip":
            return Packed(limits, _GZIP)
        case "deflate":
            return Packed(limits, zlib.MAX_WBITS)
        case other:
            raise WebFault("broken", f"It sent its text packed as {other[:40]!r}, which nobody asked for.")
