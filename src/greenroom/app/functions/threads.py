"""A function in a thread, so that nobody else has to wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from greenroom.actors.agents.crew import GRACE
from greenroom.app.threads import LeftBehind, aside

PATIENCE: Final = 0.9 * GRACE
"""Seconds that a thread has to end when its call was cancelled: before the house loses its patience."""


async def in_thread(function: Callable[..., object], arguments: Mapping[str, object]) -> object:
    """Nobody can end a thread: who cancels this waits for its end, as long as the house is ready to wait.

    One that has not ended by then is left behind, which the cancellation says as its cause.
    """
    thread = aside(partial(function, **arguments))
    try:
        return (await asyncio.shield(thread)).result()
    except asyncio.CancelledError:
        await asyncio.wait({thread}, timeout=PATIENCE)
        if thread.done():
            raise
        raise asyncio.CancelledError from LeftBehind()
