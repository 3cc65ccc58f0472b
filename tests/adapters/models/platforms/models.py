"""A model that says what it is told to say, and keeps what it was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from greenroom.core.ports.model import Finished, Model, ModelCard, ModelEvent, ModelRequest, TextDelta


class Talker:
    """Answers in order; the last answer again and again."""

    def __init__(
        self, name: str = "openai:gpt-4o", *answers: Sequence[ModelEvent], card: ModelCard | None = None
    ) -> None:
        self.name = name
        self.card = card or ModelCard()
        self.answers = list(answers) or [said("Good.")]
        self.asked: list[ModelRequest] = []

    def price(self, read: int, written: int) -> int | None:
        return None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        for event in answer:
            yield event


def said(*texts: str) -> list[ModelEvent]:
    return [*(TextDelta(text=text) for text in texts), Finished()]


def make_any(provider: str, model: str) -> Model:
    return Talker(f"{provider}:{model}")
