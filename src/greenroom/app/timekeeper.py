"""The timekeeper: fires timers when they are due. The deadlines are in the state; this only watches the nearest."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Iterable

from greenroom.core.base.clock import Clock
from greenroom.core.base.errors import Bug
from greenroom.core.base.ids import TimerId
from greenroom.core.ports.submit import Submit
from greenroom.core.rules.draft import SYSTEM
from greenroom.core.rules.intents import FireTimer
from greenroom.core.state.events import Event
from greenroom.core.state.timer import TimerSet
from greenroom.core.state.world import World

LONGEST_NAP = 30.0
"""Seconds. The wall clock may be set while we sleep: look again now and then."""

AGAIN = 10_000
"""Milliseconds after which a timer that could not be fired is tried again."""

SLACK = 64
"""Deadlines of cancelled timers that are not worth clearing away."""


class Timekeeper:
    """Sleeps until the nearest deadline, or until a nearer one is set."""

    def __init__(
        self,
        submit: Submit,
        look: Callable[[], World],
        clock: Clock,
        nap: Callable[[Awaitable[object], float], Awaitable[object]] = asyncio.wait_for,
    ) -> None:
        self._submit = submit
        self._look = look
        self._clock = clock
        self._nap = nap
        self._due: list[tuple[int, TimerId, int]] = []
        self._compact()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """How many deadlines are watched, with those that are gone and not yet noticed."""
        return len(self._due)

    def follow(self, events: Iterable[Event]) -> None:
        """Note new deadlines. Those that are gone are noticed when they come up."""
        for event in events:
            if isinstance(event, TimerSet):
                heapq.heappush(self._due, (event.timer.due, event.timer.timer_id, event.timer.due))
                self._changed.set()
        if len(self._due) > SLACK + 2 * len(self._look().timers):
            self._compact()

    def _compact(self) -> None:
        """Begin anew with what is in the state: most of what is watched was cancelled long before it is due."""
        self._due = [(timer.due, name, timer.due) for name, timer in self._look().timers.items()]
        heapq.heapify(self._due)

    async def run(self) -> None:
        """Fire what is due, for ever."""
        while True:
            self._changed.clear()
            await self.fire_due()
            wait = (self._due[0][0] - self._clock.now()) / 1000 if self._due else LONGEST_NAP
            try:
                await self._nap(self._changed.wait(), min(max(wait, 0.0), LONGEST_NAP))
            except TimeoutError:
                continue

    async def fire_due(self) -> None:
        """Fire all that is due by now."""
        while self._due and self._due[0][0] <= self._clock.now():
            _, name, due = heapq.heappop(self._due)
            timer = self._look().timers.get(name)
            if timer is not None and timer.due == due and not await self._fired(name):
                heapq.heappush(self._due, (self._clock.now() + AGAIN, name, due))

    async def _fired(self, name: TimerId) -> bool:
        try:
            (refused,) = await self._submit.submit(FireTimer(timer_id=name), by=SYSTEM)
        except Bug as error:
            logging.getLogger(__name__).warning("The timer %r: %s", name, error)
            return False
        return refused is None
