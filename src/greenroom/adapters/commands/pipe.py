"""The reading end of a command's output: who writes never waits for who reads, and little is kept in between."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from contextlib import suppress
from typing import Final

PIECE: Final = 256 * 1024
WAITING: Final = 4 * 1024 * 1024
"""Bytes that are kept for a reader that is behind; what comes on top is counted and dropped."""

PLENTY: Final = 64 * 1024 * 1024
BREATH: Final = 0.02
"""Of a command that has printed plenty, one piece per breath is taken: endless output must not cost a processor."""


class OutputPipe:
    """Reads as soon as there is something, in the loop."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._loop = asyncio.get_running_loop()
        self._pieces: deque[bytes] = deque()
        self._kept = 0
        self._read = 0
        self._news = asyncio.Event()
        self._closed = False
        self._later: asyncio.TimerHandle | None = None
        self.missing = 0
        """Bytes that were dropped since somebody asked."""

        os.set_blocking(number, False)
        self._loop.add_reader(number, self._take)

    async def next(self) -> bytes | None:
        """What came since; None after the end."""
        while not self._pieces:
            if self._closed:
                return None
            self._news.clear()
            await self._news.wait()
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._kept = 0
        return data

    def close_in(self, seconds: float) -> None:
        """Hear on for a moment: everybody who could write is dead, or does not belong to the command."""
        if not self._closed:
            self._loop.call_later(seconds, self.close)

    def close(self) -> None:
        """Read no more."""
        if self._closed:
            return
        self._closed = True
        if self._later is not None:
            self._later.cancel()
        self._loop.remove_reader(self._number)
        os.close(self._number)
        self._news.set()

    def _take(self) -> None:
        data = b""
        with suppress(BlockingIOError):
            data = os.read(self._number, PIECE)
            if not data:
                self.close()
                return
        self._read += len(data)
        if self._kept < WAITING:
            self._kept += len(data)
            self._pieces.append(data)
        else:
            self.missing += len(data)
        if self._read > PLENTY:
            self._loop.remove_reader(self._number)
            self._later = self._loop.call_later(BREATH, self._again)
        self._news.set()

    def _again(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._number, self._take)
