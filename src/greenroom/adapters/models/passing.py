"""Models around models, and passing an answer on while it comes, up to the fault that ends it, if one does."""

from __future__ import annotations

from collections.abc import AsyncIterator

from greenroom.core.ports.model import (
    Failed,
    Listening,
    Model,
    ModelCard,
    ModelEvent,
    Opaque,
    ReasoningDelta,
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
