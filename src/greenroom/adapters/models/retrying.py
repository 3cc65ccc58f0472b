"""Asking again: the one place where a failed request is repeated, with a growing and random pause and an end to it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from greenroom.adapters.models.gate import Gate
from greenroom.adapters.models.passing import Around, Passed
from greenroom.core.base.ids import StepId
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.model import Failed, Listening, Model, ModelEvent, ModelRequest, Retried


@record
class Patience:
    """How often a request is repeated (AF's three), the first pause, the longest, and for how long altogether."""

    retries: int = 3
    delay: float = 1.0
    longest: float = 60.0
    total: float = 300.0


REMEMBERED: Final = 1024
"""Steps that are about to be begun anew."""


class Retrying(Around):
    """A model that does not give up at once.

    Inside one step only what has cost nothing is repeated: the step has money for one answer. What may have cost
    something ends with `again`, so that the step is begun anew, with money of its own; its tries are counted on.
    """

    def __init__(
        self,
        model: Model,
        gate: Gate,
        patience: Patience,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(model)
        self._gate = gate
        self._patience = patience
        self._clock = clock
        self._sleep = sleep
        self._chance = chance
        self._tried: dict[tuple[str, StepId], tuple[int, float]] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask until there is an answer, it is of no use, or it has taken too long."""
        who = (request.purpose.team, request.purpose.step)
        attempt, begun = self._tried.pop(who, (0, self._clock()))
        while True:
            attempt += 1
            passed = Passed()
            async with self._gate, Listening(passed.on(self._model.stream(request))) as events:
                async for event in events:
                    yield event
            failed = passed.failed
            if failed is None:
                return
            wait = self._pause(failed, attempt, self._clock() - begun)
            if wait is None:
                yield failed
                return
            if failed.kind in ("rate", "overloaded"):
                self._gate.shut(wait)
            yield Retried(attempt=attempt + 1, wait=wait, failed=failed)
            await self._sleep(wait)
            if passed.costs:
                self._remember(who, attempt, begun)
                yield evolve(failed, again=True)
                return

    def _remember(self, who: tuple[str, StepId], attempt: int, begun: float) -> None:
        """Count on when the step begins anew. One that never does is forgotten in time."""
        self._tried[who] = (attempt, begun)
        if len(self._tried) > REMEMBERED:
            del self._tried[next(iter(self._tried))]

    def _pause(self, failed: Failed, attempts: int, spent: float) -> float | None:
        """Seconds until the next attempt; None when there is none."""
        patience = self._patience
        if failed.verdict != "retry" or attempts > patience.retries:
            return None
        wait = min(patience.delay * 2 ** (attempts - 1), patience.longest) * (0.5 + self._chance())
        if failed.retry_after is not None:
            wait = max(wait, failed.retry_after)
        return None if spent + wait > patience.total else wait
