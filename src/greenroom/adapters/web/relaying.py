"""Bytes passed on between two connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Final

PIECE: Final = 2**16

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Callable[[], None], most: int | None = None
) -> None:
    """Pass on what comes, `most` bytes at most. The end of a stream without a bound is passed on too."""
    left = PIECE if most is None else most
    while left > 0 and (piece := await reader.read(min(PIECE, left))):
        heard()
        writer.write(piece)
        await writer.drain()
        heard()
        left -= 0 if most is None else len(piece)
    if most is None and writer.can_write_eof():
        writer.write_eof()


async def both(*pumps: Coroutine[None, None, None]) -> None:
    """Until all have ended, or one has failed."""
    tasks = [asyncio.ensure_future(one) for one in pumps]
    try:
        await asyncio.gather(*tasks)
    finally:
        await _ended(tasks)


async def first(main: Coroutine[None, None, None], beside: Coroutine[None, None, None]) -> None:
    """Until the first has ended, whatever the other does."""
    tasks = [asyncio.ensure_future(one) for one in (main, beside)]
    try:
        await tasks[0]
    finally:
        await _ended(tasks)


async def _ended(tasks: Iterable[asyncio.Future[None]]) -> None:
    for one in tasks:
        one.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
