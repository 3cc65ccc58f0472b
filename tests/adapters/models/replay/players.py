"""A model that plays plans and events, for tests of recordings."""

from collections.abc import AsyncIterator, Iterable, Mapping

from greenroom.core.ports.model import (
    Failed,
    Finished,
    ModelCard,
    ModelEvent,
    ModelReasoningDelta,
    ModelRequest,
    ModelTextDelta,
)
from greenroom.testing.conformance.models import AnswerPlan


def events(plan: AnswerPlan) -> list[ModelEvent]:
    """Return the events of a model that follows the plan."""
    if plan.fault:
        return [Failed(kind="auth", why="The key is wrong.", said="no", status=401)]
    said: list[ModelEvent] = [ModelReasoningDelta(text=word) for word in words(plan.reasoning)]
    said += [ModelTextDelta(text=word) for word in words(plan.text)]
    said += [
        call if n == 0 else type(call)(call_id=f"x{n}", name=call.name, arguments=call.arguments)
        for n, call in enumerate(plan.calls)
    ]
    said += [plan.usage] if plan.usage else []
    return [*said, Finished(reason=plan.finish or ("calls" if plan.calls else "stop"), model="m", response_id="r")]


def words(text: str) -> list[str]:
    return [word if n == 0 else f" {word}" for n, word in enumerate(text.split(" "))] if text else []


class Player:
    """Plays these events by the last user message. `closed` counts the ended streams."""

    name = "test:player"
    card = ModelCard(family="test", window=1000, output=100)

    def __init__(self, said: Mapping[str, Iterable[ModelEvent]]) -> None:
        self._said = {words: list(events) for words, events in said.items()}
        self.closed = 0

    def price(self, read: int, written: int) -> int | None:
        return 2 * read + 3 * written

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        try:
            for event in self._said[request.messages[-1].content]:
                yield event
        finally:
            self.closed += 1
