"""Bytes that come in pieces, as lines: each byte is touched once, no line is too long to be held, and none too soon."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from greenroom.core.base.errors import WorldFault


class Lines:
    """Takes pieces, gives whole lines."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._pieces: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that this piece ends; `WorldFault` if the one that it goes on is too long."""
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._hold(piece)
            line = b"".join(self._pieces)
            self._pieces.clear()
            self._held = 0
            yield line
        self._hold(rest)

    def _hold(self, piece: bytes) -> None:
        self._held += len(piece)
        if self._held > self._longest:
            raise WorldFault(f"It sent a message of more than {self._longest // 1_000_000} MB.")
        if piece:
            self._pieces.append(piece)


class Pace:
    """So many lines a second, and no more: whoever sends faster has to wait, not everybody else in the house."""

    def __init__(self, a_second: int) -> None:
        self._most = a_second
        self._left = a_second
        self._since = 0.0

    async def step(self) -> None:
        """One more line; returns when it may be read."""
        now = asyncio.get_running_loop().time()
        if now - self._since >= 1.0:
            self._since, self._left = now, self._most
        self._left -= 1
        if self._left < 0:
            await asyncio.sleep(self._since + 1.0 - now)
