"""A group: a model and those that stand in for it. Whoever fails rests for a while."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from greenroom.adapters.models.passing import Passed
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import Listening, Model, ModelCard, ModelEvent, ModelRequest, Retried

REST: Final = 60.0
"""Seconds for which a model that failed is asked only if no other one is left."""

_OWN_FAULTS: Final = frozenset({"request", "filter", "too_large"})
"""What is wrong with the request or the answer would be wrong with another model too."""


class Group:
    """Asks the first that does not rest; on a fault that is not the request's own, the next one."""

    def __init__(self, name: str, models: Sequence[Model], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._models = models
        self._clock = clock
        self._rests: dict[str, float] = {}

    @property
    def card(self) -> ModelCard:
        """What all of them can do: any of them may have to answer."""
        cards = [model.card for model in self._models]
        return evolve(
            cards[0],
            window=min(card.window for card in cards),
            output=min(card.output for card in cards),
            tools=all(card.tools for card in cards),
            images=all(card.images for card in cards),
            files=all(card.files for card in cards),
        )

    def price(self, read: int, written: int) -> int | None:
        """The dearest one's."""
        prices = [model.price(read, written) for model in self._models]
        known = [price for price in prices if price is not None]
        return max(known) if len(known) == len(prices) else None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask one after the other."""
        line = self._line()
        for place, model in enumerate(line, start=1):
            passed = Passed()
            async with Listening(passed.on(model.stream(request))) as events:
                async for event in events:
                    yield event
            failed = passed.failed
            if failed is None:
                self._rests.pop(model.name, None)
                return
            if failed.again or failed.kind in _OWN_FAULTS or place == len(line):
                yield failed
                return
            self._rests[model.name] = self._clock() + REST
            if passed.costs:
                yield evolve(failed, again=True)  # the next one is asked in a new attempt, with money of its own
                return
            yield Retried(attempt=request.purpose.attempt, wait=0.0, failed=failed)

    def _line(self) -> list[Model]:
        now = self._clock()
        return sorted(self._models, key=lambda model: self._rests.get(model.name, 0.0) > now)
