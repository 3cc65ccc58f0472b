"""A function in a thread, so that nobody else has to wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, Literal, Self

from greenroom.actors.agents.crew import GRACE

PATIENCE: Final = 0.9 * GRACE
"""Seconds that a thread has to end when its call was cancelled: before the house loses its patience."""


async def in_thread(function: Callable[..., object], arguments: Mapping[str, object]) -> object:
    """Nobody can end a thread: who cancels this waits for its end, as long as the house is ready to wait."""
    thread = asyncio.ensure_future(asyncio.to_thread(_ended, function, arguments))
    thread.add_done_callback(lambda done: None if done.cancelled() else done.exception())
    try:
        ended = await asyncio.shield(thread)
    except asyncio.CancelledError:
        await asyncio.wait({thread}, timeout=PATIENCE)
        raise
    if ended.error is None:
        return ended.value
    if isinstance(ended.error, Exception) and not isinstance(ended.error, StopIteration):
        raise ended.error
    raise RuntimeError(f"{type(ended.error).__name__}: {ended.error}") from ended.error


class _Ended:
    """How a function has ended. A future cannot hold every exception, and one that it cannot hold would never end."""

    def __init__(self) -> None:
        self.value: object = None
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> Literal[True]:
        self.error = error
        return True


def _ended(function: Callable[..., object], arguments: Mapping[str, object]) -> _Ended:
    with _Ended() as ended:
        ended.value = function(**arguments)
    return ended
