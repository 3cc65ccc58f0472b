"""Runs functions in threads that never keep a run or the process from ending."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final, Literal, Self, TypeAlias

from greenroom.actors.pool import CANCEL_TIMEOUT_S

IDLE_S: Final = 10.0
"""Seconds that an idle thread waits for another function."""


class ThreadAbandoned(Exception):
    """A function was abandoned before it ended. A thread cannot be stopped."""


class CallOutcome:
    """The outcome of a function. A future cannot hold every exception, so the outcome wraps it."""

    def __init__(self) -> None:
        self.value: object = None
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> Literal[True]:
        self.error = error
        return True

    def result(self) -> object:
        """Return the result, or raise the error as an exception that a coroutine can raise."""
        if self.error is None:
            return self.value
        if isinstance(self.error, Exception) and not isinstance(self.error, StopIteration):
            raise self.error
        raise RuntimeError(f"{type(self.error).__name__}: {self.error}") from self.error


ThreadCall: TypeAlias = (
    "tuple[contextvars.Context, Callable[[], object], asyncio.AbstractEventLoop, asyncio.Future[CallOutcome]]"
)
_idle: Final[list[SimpleQueue[ThreadCall]]] = []
"""Idle threads. Waking one costs a third of starting one."""


def start_in_thread(function: Callable[[], object]) -> asyncio.Future[CallOutcome]:
    """Start a function in a thread. Unlike a pool's threads, these do not block the end of the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[CallOutcome] = loop.create_future()
    try:
        calls = _idle.pop()
    except IndexError:
        calls = SimpleQueue()
        threading.Thread(target=_serve_calls, args=(calls,), name="greenroom aside", daemon=True).start()
    calls.put((contextvars.copy_context(), function, loop, future))
    return future


def _serve_calls(calls: SimpleQueue[ThreadCall]) -> None:
    """Run functions in this thread, and end after a while without any."""
    while True:
        try:
            context, function, loop, future = calls.get(timeout=IDLE_S)
        except Empty:
            with suppress(ValueError):  # not idle any more: it has just received another call
                _idle.remove(calls)
                return
            continue
        with CallOutcome() as outcome:
            outcome.value = context.run(function)
        _idle.append(calls)
        with suppress(RuntimeError):  # the loop is closed: the outcome has no receiver
            loop.call_soon_threadsafe(_set_outcome, future, outcome)
        del context, function, loop, future, outcome


def was_abandoned(error: BaseException | None) -> bool:
    """Whether a call was abandoned while its function still runs."""
    while error is not None and not isinstance(error, ThreadAbandoned):
        error = error.__cause__ or error.__context__  # Python 3.11.2 gives a timeout no cause
    return error is not None


def _set_outcome(future: asyncio.Future[CallOutcome], outcome: CallOutcome) -> None:
    if not future.done():
        future.set_result(outcome)


ABANDON_AFTER_S: Final = 0.9 * CANCEL_TIMEOUT_S
"""Seconds that a thread has to end after its call was cancelled."""


async def run_in_thread(function: Callable[..., object], arguments: Mapping[str, object]) -> object:
    """Run a function in a thread. After a cancellation, wait a limited time for its end. If it has not ended by then,
    it is abandoned, and the cancellation has `ThreadAbandoned` as its cause."""
    thread = start_in_thread(partial(function, **arguments))
    try:
        return (await asyncio.shield(thread)).result()
    except asyncio.CancelledError:
        await asyncio.wait({thread}, timeout=ABANDON_AFTER_S)
        if thread.done():
            raise
        raise asyncio.CancelledError from ThreadAbandoned()
