"""A function in a thread of its own, which keeps nothing from ending: not a run, and not the process either."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final, Literal, Self, TypeAlias

from greenroom.actors.pool import GRACE

IDLE_S: Final = 10.0
"""Seconds that a thread waits for another function."""


class LeftBehind(Exception):
    """Nobody waits for a function any more, and it has not ended. Nobody can end a thread."""


class Ended:
    """How a function has ended. A future cannot hold every exception, and one that it cannot hold would never end."""

    def __init__(self) -> None:
        self.value: object = None
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> Literal[True]:
        self.error = error
        return True

    def result(self) -> object:
        """What it returned. What it raised is raised, as an exception that a coroutine can raise."""
        if self.error is None:
            return self.value
        if isinstance(self.error, Exception) and not isinstance(self.error, StopIteration):
            raise self.error
        raise RuntimeError(f"{type(self.error).__name__}: {self.error}") from self.error


Job: TypeAlias = "tuple[contextvars.Context, Callable[[], object], asyncio.AbstractEventLoop, asyncio.Future[Ended]]"
_idle: Final[list[SimpleQueue[Job]]] = []
"""The threads that wait for a function. To wake one costs a third of what it costs to start one."""


def aside(function: Callable[[], object]) -> asyncio.Future[Ended]:
    """Begin it at once. A pool's threads are waited for when a process ends; these are not."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[Ended] = loop.create_future()
    try:
        jobs = _idle.pop()
    except IndexError:
        jobs = SimpleQueue()
        threading.Thread(target=_serve, args=(jobs,), name="greenroom aside", daemon=True).start()
    jobs.put((contextvars.copy_context(), function, loop, over))
    return over


def _serve(jobs: SimpleQueue[Job]) -> None:
    """A thread: run one function after the other, and end after a while without any."""
    while True:
        try:
            context, function, loop, over = jobs.get(timeout=IDLE_S)
        except Empty:
            with suppress(ValueError):  # not among the idle ones: somebody has just given it something to do
                _idle.remove(jobs)
                return
            continue
        with Ended() as ended:
            ended.value = context.run(function)
        _idle.append(jobs)
        with suppress(RuntimeError):  # the loop is closed: nobody is there to hear of it
            loop.call_soon_threadsafe(_settle, over, ended)
        del context, function, loop, over, ended


def was_left(error: BaseException | None) -> bool:
    """Whether a call was given up whose function goes on."""
    while error is not None and not isinstance(error, LeftBehind):
        error = error.__cause__ or error.__context__  # Python 3.11.2 gives a timeout no cause
    return error is not None


def _settle(over: asyncio.Future[Ended], ended: Ended) -> None:
    if not over.done():
        over.set_result(ended)


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
