"""Wrappers around models: rate limits per provider, retries after a fault, and groups with fallback."""

from __future__ import annotations

import asyncio
import math
import os
import random
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from greenroom.core.base.errors import translate
from greenroom.core.base.ids import StepId
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.model import (
    ClosingStream,
    Failed,
    Model,
    ModelCard,
    ModelEvent,
    ModelReasoningDelta,
    ModelRequest,
    ModelTextDelta,
    Opaque,
    Retried,
    ToolCall,
    Usage,
)

_BILLABLE_EVENTS = (ModelTextDelta, ModelReasoningDelta, ToolCall, Opaque, Usage)


class ModelWrapper:
    """A wrapper with the name, card and price of the wrapped model."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self.card: ModelCard = model.card
        self.price = model.price
        self._model = model


class StreamOutcome:
    """The outcome of a stream: its fault, if any, and whether it may have cost something."""

    def __init__(self) -> None:
        self.failure: Failed | None = None
        self.has_cost = False

    async def send(self, model: Model, request: ModelRequest, early: Failed | None = None) -> AsyncIterator[ModelEvent]:
        """Send a request, unless a fault is known before. Yield all events except the fault."""
        self.failure = early
        if early is not None:
            return
        async with ClosingStream(model.stream(request)) as events:
            async for event in events:
                if isinstance(event, Failed):
                    self.failure = event
                    self.has_cost = self.has_cost or not event.is_free
                    return
                self.has_cost = self.has_cost or isinstance(event, _BILLABLE_EVENTS)
                yield event


SECONDS_PER_MINUTE: Final = 60.0


class RateLimiter:
    """Limits the requests to one provider, for all agents of the process. 0 means no limit."""

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
        self._running = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._started_at: deque[float] = deque()
        self._paused_until = 0.0
        self._wakeup: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        """Wait until the request may start."""
        if self._queue or self._is_full or self._compute_wait() > 0:
            await self._wait_for_turn()
        else:
            self._enter()

    async def __aexit__(self, *_: object) -> None:
        """End the request and admit the next one."""
        self._running -= 1
        self._admit()

    def pause(self, seconds: float) -> None:
        """Admit no request for this many seconds, because the provider demands it."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)

    @property
    def _is_full(self) -> bool:
        return 0 < self._parallel <= self._running

    def _compute_wait(self) -> float:
        """Return the seconds until the next request may start; 0 if only the parallel limit counts."""
        now = self._clock()
        while self._started_at and self._started_at[0] <= now - SECONDS_PER_MINUTE:
            self._started_at.popleft()
        is_paced = 0 < self._per_minute <= len(self._started_at)
        return max(self._paused_until - now, self._started_at[0] + SECONDS_PER_MINUTE - now if is_paced else 0.0)

    def _enter(self) -> None:
        self._running += 1
        if self._per_minute:
            self._started_at.append(self._clock())

    async def _wait_for_turn(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._running -= 1  # it was admitted and cancelled at the same time
            self._admit()
            raise

    def _admit(self) -> None:
        """Admit as many waiting requests as the limits allow. If only time is missing, try again later."""
        while self._queue and not self._is_full:
            if self._queue[0].done():
                self._queue.popleft()  # it was cancelled
                continue
            pause_s = self._compute_wait()
            if pause_s > 0:
                if self._wakeup is None:
                    self._wakeup = asyncio.create_task(self._admit_later(pause_s))
                return
            self._enter()
            self._queue.popleft().set_result(None)

    async def _admit_later(self, wait: float) -> None:
        try:
            await self._sleep(wait)
        finally:
            self._wakeup = None
        self._admit()


MAX_RETRY_AFTER_S: Final = 3600.0
"""Longest wait that a provider can ask for, in seconds."""

READ_AGAIN_S: Final = 0.1
"""How long a time that was read is used, in seconds."""


class RetryTime:
    """When a model may be asked again, as its provider said. All processes share it through a file."""

    def __init__(self, path: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._at = 0.0
        self._stored, self._read_at = 0.0, -math.inf

    async def postpone(self, seconds: float) -> None:
        """Store that the model may not be asked for so many seconds. A later time that is stored stays."""
        self._at = max(self._at, self._clock() + min(seconds, MAX_RETRY_AFTER_S))
        self._read_at = -math.inf  # another process may have stored a later time just now
        self._at = max(self._at, await self.compute_wait() + self._clock())
        if self._path is not None:
            await asyncio.to_thread(self._store, self._path)

    async def compute_wait(self) -> float:
        """Return the seconds until the model may be asked; 0 if it may be asked now."""
        if self._path is not None and not 0 <= self._clock() - self._read_at < READ_AGAIN_S:
            self._stored = await asyncio.to_thread(self._read, self._path)
            self._read_at = self._clock()
        now, times = self._clock(), (self._at, self._stored)
        # A longer wait was not stored by this clock.
        return max((at - now for at in times if now < at <= now + MAX_RETRY_AFTER_S), default=0.0)

    def _store(self, path: Path) -> None:
        draft = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(repr(self._at), encoding="ascii")
            draft.replace(path)
        except OSError:
            return  # a full or read-only disk: this process still waits

    def _read(self, path: Path) -> float:
        try:
            return float(path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0.0  # nothing was stored, or not by us


@record
class RetryPolicy:
    """How often to retry (AF's three), the first and longest pause, and the total time, in seconds."""

    retries: int = 3
    delay: float = 1.0
    longest: float = 60.0
    total: float = 300.0


MAX_STEPS_REMEMBERED: Final = 1024
"""How many steps with a pending retry are remembered."""


class RetryingModel(ModelWrapper):
    """A model that retries after faults.

    Within a step, only a request that cost nothing is repeated: the step has budget for one response. If a request may
    have cost something, the fault has `again` set. Then the step starts again with a new budget, and its attempts keep
    counting.
    """

    def __init__(
        self,
        model: Model,
        limiter: RateLimiter,
        policy: RetryPolicy,
        retry_time: RetryTime | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(model)
        self._retry_time = retry_time or RetryTime(clock=clock)
        self._limiter = limiter
        self._policy = policy
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._attempts: dict[tuple[str, StepId], tuple[int, float]] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request until it succeeds, a retry is pointless, or the time is over."""
        key = (request.purpose.team, request.purpose.step)
        attempt, started = self._attempts.pop(key, (0, self._clock()))
        while True:
            attempt += 1
            outcome = StreamOutcome()
            async with self._limiter, ClosingStream(outcome.send(self._model, request, await self._refuse())) as events:
                async for event in events:
                    yield event
            failed = outcome.failure
            if failed is None:
                return
            if failed.unsent and failed.retry_after:
                attempt -= 1  # it was refused here, before the provider's time
            elif failed.retry_after and failed.action == "retry":
                await self._retry_time.postpone(failed.retry_after)
            wait = self._compute_pause(failed, attempt, self._clock() - started)
            if wait is None:
                early = None if failed.unsent else await self._refuse()
                yield evolve(failed, why=f"{failed.why} {early.why}") if early is not None else failed
                return
            if failed.kind in ("rate", "overloaded"):
                self._limiter.pause(wait)
            yield Retried(attempt=attempt + 1, wait=wait, failed=failed)
            await self._sleep(wait)
            if outcome.has_cost:
                self._attempts[key] = (attempt, started)
                if len(self._attempts) > MAX_STEPS_REMEMBERED:
                    del self._attempts[next(iter(self._attempts))]  # the oldest
                yield evolve(failed, again=True)
                return

    async def _refuse(self) -> Failed | None:
        """Return the fault of a request before the time that the provider named; None if it may be sent."""
        wait = await self._retry_time.compute_wait()
        if not wait:
            return None
        clock = time.strftime("%H:%M:%S", time.localtime(time.time() + wait))
        why = translate("provider_faults.retry_later", who=self.name, time=clock, seconds=wait)
        return Failed(kind="rate", why=why, retry_after=wait, unsent=True)

    def _compute_pause(self, failed: Failed, attempts: int, spent: float) -> float | None:
        """Return the seconds until the next attempt; None if there is none."""
        policy = self._policy
        if failed.action != "retry" or attempts > policy.retries:
            return None
        wait = min(policy.delay * 2 ** (attempts - 1), policy.longest) * (0.5 + self._jitter())
        if failed.retry_after is not None:
            wait = max(wait, failed.retry_after)
        return None if spent + wait > policy.total else wait


REST_S: Final = 60.0
"""How long a failed model is used only as a last resort, in seconds."""

_REQUEST_FAULTS: Final = frozenset({"request", "filter", "too_large"})
"""Faults of the request or response itself, which another model would have too."""


class ModelGroup:
    """A group of models. It uses the first that did not fail recently, and the next after a fault of the model."""

    def __init__(self, name: str, models: Sequence[Model], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._models = models
        self._clock = clock
        self._resting_until: dict[str, float] = {}

    @property
    def card(self) -> ModelCard:
        """The common capabilities of all models, because any of them may answer."""
        cards = [model.card for model in self._models]
        return evolve(
            cards[0],
            window=min(card.window for card in cards),
            output=min(card.output for card in cards),
            tools=all(card.tools for card in cards),
            images=all(card.images for card in cards),
            files=all(card.files for card in cards),
            image_tokens=max(card.image_tokens for card in cards),
        )

    def price(self, read: int, written: int) -> int | None:
        """Return the highest price; None if any price is unknown."""
        prices = [model.price(read, written) for model in self._models]
        known_prices = [price for price in prices if price is not None]
        return max(known_prices) if len(known_prices) == len(prices) else None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request to one model after another until one answers."""
        models = self._order_models()
        for place, model in enumerate(models, start=1):
            outcome = StreamOutcome()
            async with ClosingStream(outcome.send(model, request)) as events:
                async for event in events:
                    yield event
            failed = outcome.failure
            if failed is None:
                self._resting_until.pop(model.name, None)
                return
            if failed.again or failed.kind in _REQUEST_FAULTS or place == len(models):
                yield failed
                return
            self._resting_until[model.name] = self._clock() + REST_S
            if outcome.has_cost:
                yield evolve(failed, again=True)  # the next model is used in a new attempt with its own budget
                return
            yield Retried(attempt=request.purpose.attempt, wait=0.0, failed=failed, model=models[place].name)

    def _order_models(self) -> list[Model]:
        now = self._clock()
        return sorted(self._models, key=lambda model: self._resting_until.get(model.name, 0.0) > now)


class LazyModel:
    """A model that is created by `make` on first use. Name, card and price are known before."""

    def __init__(
        self, name: str, card: ModelCard, price: Callable[[int, int], int | None], make: Callable[[], Model]
    ) -> None:
        self.name = name
        self.card = card
        self.price = price
        self._make = make
        self._model: Model | None = None

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send a request and yield the response as it arrives."""
        if self._model is None:
            self._model = self._make()
        return self._model.stream(request)
