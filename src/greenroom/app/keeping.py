"""Keeping what is large although the disk is full: it stays in memory until there is room, like all that is written."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from greenroom.core.base.errors import StoreFull
from greenroom.core.ports.log import Blobs

SHORTEST: Final = 0.05
LONGEST: Final = 2.0
"""Seconds between two tries."""


class PatientBlobs:
    """The blobs of a team at work. A result was paid for, or stands for something done: it is not given up."""

    def __init__(
        self,
        blobs: Blobs,
        worry: Callable[[str | None], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._blobs = blobs
        self._worry = worry
        self._sleep = sleep

    async def put_blob(self, data: bytes) -> str:
        """Keep the bytes, as soon as there is room for them."""
        delay, waited = SHORTEST, False
        while True:
            try:
                digest = await self._blobs.put_blob(data)
            except StoreFull as full:
                waited = True
                self._worry(str(full))
                await self._sleep(delay)
                delay = min(2 * delay, LONGEST)
            else:
                if waited:
                    self._worry(None)
                return digest

    async def get_blob(self, digest: str) -> bytes:
        """The bytes."""
        return await self._blobs.get_blob(digest)
