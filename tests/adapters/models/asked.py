"""Models that do what a test says, and time that passes when a test lets it."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from greenroom.core.ports.model import Failed, FaultKind, Finished, ModelCard, ModelEvent, ModelRequest, TextDelta

GOOD: tuple[ModelEvent, ...] = (TextDelta(text="Yes."), Finished(by="fake:m"))


def fault(kind: FaultKind, retry_after: float | None = None) -> Failed:
    """A fault of this kind."""
    return Failed(kind=kind, why=f"fake:m: {kind}.", retry_after=retry_after)


class Played:
    """Plays answers in order, and the last one again and again."""

    def __init__(self, *answers: Sequence[ModelEvent], name: str = "fake:m", card: ModelCard | None = None) -> None:
        self.name = name
        self.card = card or ModelCard()
        self.asked: list[ModelRequest] = []
        self.closed = 0
        self._answers = answers

    def price(self, read: int, written: int) -> int | None:
        """One for each token."""
        return read + written

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The next answer."""
        self.asked.append(request)
        try:
            for event in self._answers[min(len(self.asked), len(self._answers)) - 1]:
                await asyncio.sleep(0)
                yield event
        finally:
            self.closed += 1


class Time:
    """A clock that jumps over every nap."""

    def __init__(self) -> None:
        self.now = 100.0
        self.naps: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        """At once, but later."""
        self.naps.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)
