"""The timekeeper: fires timers when they are due. The deadlines are in the state; this watches the nearest one."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Iterable

from greenroom.core.base.clock import Clock
from greenroom.core.base.errors import Bug
from greenroom.core.base.ids import TimerId
from greenroom.core.ports.submit import IntentSubmitter
from greenroom.core.rules.draft import SYSTEM
from greenroom.core.rules.intents import FireTimer
from greenroom.core.state.events import Event
from greenroom.core.state.team_state import TeamState
from greenroom.core.state.timer import TimerSet

MAX_SLEEP_S = 30.0
"""The longest sleep in seconds. The system clock can change meanwhile."""

REFIRE_AFTER_MS = 10_000
"""Milliseconds after which a timer that failed to fire is tried again."""

MAX_STALE_DEADLINES = 64
"""How many deadlines of cancelled timers are tolerated before a cleanup."""


class Timekeeper:
    """Sleeps until the nearest deadline, or until a nearer one is set."""

    def __init__(
        self,
        submit: IntentSubmitter,
        read_state: Callable[[], TeamState],
        clock: Clock,
        wait_for: Callable[[Awaitable[object], float], Awaitable[object]] = asyncio.wait_for,
    ) -> None:
        self._submit = submit
        self._read_state = read_state
        self._clock = clock
        self._wait_for = wait_for
        self._due: list[tuple[int, TimerId, int]] = []
        self._compact()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """How many deadlines are watched, including cancelled ones that were not noticed yet."""
        return len(self._due)

    def follow(self, events: Iterable[Event]) -> None:
        """Add new deadlines. Cancelled ones are noticed when they are due."""
        for event in events:
            if isinstance(event, TimerSet):
                heapq.heappush(self._due, (event.timer.due, event.timer.timer_id, event.timer.due))
                self._changed.set()
        if len(self._due) > MAX_STALE_DEADLINES + 2 * len(self._read_state().timers):
            self._compact()

    def _compact(self) -> None:
        """Rebuild the deadlines from the state. Most watched timers are cancelled long before they are due."""
        self._due = [(timer.due, name, timer.due) for name, timer in self._read_state().timers.items()]
        heapq.heapify(self._due)

    async def run(self) -> None:
        """Fire due timers forever."""
        while True:
            self._changed.clear()
            await self.fire_due()
            wait = (self._due[0][0] - self._clock.now()) / 1000 if self._due else MAX_SLEEP_S
            try:
                await self._wait_for(self._changed.wait(), min(max(wait, 0.0), MAX_SLEEP_S))
            except TimeoutError:
                continue

    async def fire_due(self) -> None:
        while self._due and self._due[0][0] <= self._clock.now():
            _, name, due = heapq.heappop(self._due)
            timer = self._read_state().timers.get(name)
            if timer is not None and timer.due == due and not await self._try_fire(name):
                heapq.heappush(self._due, (self._clock.now() + REFIRE_AFTER_MS, name, due))

    async def _try_fire(self, name: TimerId) -> bool:
        try:
            (refused,) = await self._submit.submit(FireTimer(timer_id=name), by=SYSTEM)
        except Bug as error:
            logging.getLogger(__name__).warning("The timer %r: %s", name, error)
            return False
        return refused is None
