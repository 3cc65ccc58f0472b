"""Models that a test scripts, and a clock that a test controls."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from greenroom.core.ports.model import Failed, FaultKind, Finished, ModelCard, ModelEvent, ModelRequest, ModelTextDelta

GOOD: tuple[ModelEvent, ...] = (ModelTextDelta(text="Yes."), Finished(by="fake:m"))


def fault(kind: FaultKind, retry_after: float | None = None) -> Failed:
    return Failed(kind=kind, why=f"fake:m: {kind}.", retry_after=retry_after)


class Played:
    """Plays answers in order. The last answer repeats."""

    def __init__(self, *answers: Sequence[ModelEvent], name: str = "fake:m", card: ModelCard | None = None) -> None:
        self.name = name
        self.card = card or ModelCard()
        self.asked: list[ModelRequest] = []
        self.closed = 0
        self._answers = answers

    def price(self, read: int, written: int) -> int | None:
        """Return 1 per token."""
        return read + written

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.append(request)
        try:
            for event in self._answers[min(len(self.asked), len(self._answers)) - 1]:
                await asyncio.sleep(0)
                yield event
        finally:
            self.closed += 1


class Time:
    """A clock that skips every sleep."""

    def __init__(self) -> None:
        self.now = 100.0
        self.naps: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Advance the clock without waiting."""
        self.naps.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)
