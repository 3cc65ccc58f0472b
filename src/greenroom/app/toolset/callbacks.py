"""Functions that are told of a tool call afterwards, each in a thread of its own. One that fails harms nothing else."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from typing import Final, TypeAlias, cast

from greenroom.app.threads import Ended, aside
from greenroom.core.ports.executor import Outcome
from greenroom.core.state.step import Step

Callback: TypeAlias = Callable[[Mapping[str, object]], object]

SECONDS: Final = 5.0
"""How long one of them is waited for."""


class Callbacks:
    """All callbacks, told one after the other. Each runs in a thread and has a copy of its own.

    One that fails, or does not end, is told of in the log of the program, and costs nobody anything. As long as it has
    not ended it hears of nothing more.
    """

    def __init__(self, callbacks: Iterable[Callback] = (), seconds: float = SECONDS) -> None:
        self._callbacks = tuple(callbacks)
        self._seconds = seconds
        self._going: dict[int, asyncio.Future[Ended]] = {}

    async def __call__(self, step: Step, outcome: Outcome) -> None:
        """Tell all of them of a call that was made."""
        await self.tell(told_of(step, outcome), step.work.executor)

    async def tell(self, told: Mapping[str, object], after: str) -> None:
        """Tell all of them; `after` is what this is about, in a word."""
        log = logging.getLogger(__name__)
        for number, callback in enumerate(self._callbacks):
            going = self._going.get(number)
            if going is not None and not going.done():
                log.warning("%s is not told of %s: it has not ended yet", _name(callback), after)
                continue
            thread = self._going[number] = aside(partial(_called, callback, deepcopy(dict(told))))
            await asyncio.wait({thread}, timeout=self._seconds)
            if not thread.done():
                late = "%s has not ended %g seconds after %s: nobody waits for it any more"
                log.warning(late, _name(callback), self._seconds, after)
            elif thread.result().error is not None:
                log.error("%s failed after %s", _name(callback), after, exc_info=thread.result().error)


def _called(callback: Callback, told: Mapping[str, object]) -> None:
    """A coroutine gets a loop of its own: on the house's one it could hold everybody up."""
    said = callback(told)

    async def awaited() -> None:
        await cast("Awaitable[object]", said)

    if inspect.isawaitable(said):
        asyncio.run(awaited())


def _name(callback: Callback) -> str:
    return f"The callback {getattr(callback, '__qualname__', type(callback).__name__)!r}"


def told_of(step: Step, outcome: Outcome) -> Mapping[str, object]:
    """What a callback is told."""
    return {
        "agent": step.agent_id,
        "tool": step.work.executor,
        "arguments": dict(step.work.instruction_content or {}),
        "state": outcome.state,
        "output": str((outcome.result or {}).get("output", "")),
        "error": outcome.error,
    }
