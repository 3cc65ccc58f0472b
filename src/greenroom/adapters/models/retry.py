"""Models around models: the gate before a provider, asking again after a fault, and standing in for one another."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from greenroom.core.base.ids import StepId
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.model import (
    Failed,
    Listening,
    Model,
    ModelCard,
    ModelEvent,
    ModelRequest,
    Opaque,
    ReasoningDelta,
    Retried,
    TextDelta,
    ToolCall,
    Usage,
)

_CONTENT = (TextDelta, ReasoningDelta, ToolCall, Opaque, Usage)


class Around:
    """A model around another one: it is called, knows and costs what that one does, and asks it in its own way."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The model's own."""
        return self._model.name

    @property
    def card(self) -> ModelCard:
        """The model's own."""
        return self._model.card

    def price(self, read: int, written: int) -> int | None:
        """The model's own."""
        return self._model.price(read, written)


class Passed:
    """What became of an answer: the fault, if there was one, and whether anything came that may have to be paid."""

    def __init__(self) -> None:
        self.failed: Failed | None = None
        self.costs = False

    async def on(self, stream: AsyncIterator[ModelEvent]) -> AsyncIterator[ModelEvent]:
        """All of it but the fault."""
        async with Listening(stream) as events:
            async for event in events:
                if isinstance(event, Failed):
                    self.failed = event
                    self.costs = self.costs or not event.free
                    return
                self.costs = self.costs or isinstance(event, _CONTENT)
                yield event


MINUTE: Final = 60.0


class Gate:
    """One per provider, shared by all agents of the process. `parallel` and `per_minute` of 0 mean no limit."""

    def __init__(
        self,
        parallel: int = 0,
        per_minute: int = 0,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._parallel = parallel
        self._per_minute = per_minute
        self._clock = clock
        self._sleep = sleep
        self._inside = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self._begun: deque[float] = deque()
        self._shut_until = 0.0
        self._shutting: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        """Wait for one's turn."""
        if self._line or self._full or self._wait() > 0:
            await self._stand_in_line()
        else:
            self._enter()

    async def __aexit__(self, *_: object) -> None:
        """Let the next one in."""
        self._inside -= 1
        self._let_in()

    def shut(self, seconds: float) -> None:
        """The provider wants to be left alone for so long: nobody gets in before."""
        self._shut_until = max(self._shut_until, self._clock() + seconds)

    @property
    def _full(self) -> bool:
        return 0 < self._parallel <= self._inside

    def _wait(self) -> float:
        """Seconds until somebody may get in, as far as the clock is concerned."""
        now = self._clock()
        while self._begun and self._begun[0] <= now - MINUTE:
            self._begun.popleft()
        paced = 0 < self._per_minute <= len(self._begun)
        return max(self._shut_until - now, self._begun[0] + MINUTE - now if paced else 0.0)

    def _enter(self) -> None:
        self._inside += 1
        if self._per_minute:
            self._begun.append(self._clock())

    async def _stand_in_line(self) -> None:
        mine = asyncio.get_running_loop().create_future()
        self._line.append(mine)
        self._let_in()
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._inside -= 1  # it was let in and went away at the same moment
            self._let_in()
            raise

    def _let_in(self) -> None:
        """Let in whoever is first, as many as may; when only time is in the way, look again later."""
        while self._line and not self._full:
            if self._line[0].done():
                self._line.popleft()  # it went away
                continue
            wait = self._wait()
            if wait > 0:
                if self._shutting is None:
                    self._shutting = asyncio.create_task(self._later(wait))
                return
            self._enter()
            self._line.popleft().set_result(None)

    async def _later(self, wait: float) -> None:
        try:
            await self._sleep(wait)
        finally:
            self._shutting = None
        self._let_in()


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


class Late:
    """Has a name, a card and a price already. `make` is called once; whatever can be refused was refused before."""

    def __init__(
        self, name: str, card: ModelCard, price: Callable[[int, int], int | None], make: Callable[[], Model]
    ) -> None:
        self.name = name
        self.card = card
        self.price = price
        self._make = make
        self._made: Model | None = None

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask, and read the answer as it comes."""
        if self._made is None:
            self._made = self._make()
        return self._made.stream(request)
