"""The gate before a provider: how many may ask at once, how many per minute. First come, first in."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

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
