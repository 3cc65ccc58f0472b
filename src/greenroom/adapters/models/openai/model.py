"""A model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

import aiohttp

from greenroom.adapters.models.openai.body import Body
from greenroom.adapters.models.openai.encoding import Encoding, words_of
from greenroom.adapters.models.openai.endpoint import Endpoint
from greenroom.adapters.models.openai.faults import Faults
from greenroom.adapters.models.openai.reading import Complaint, Reading, TooMuch
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import Failed, Listening, ModelCard, ModelEvent, ModelRequest, Usage

LONGEST: Final = 900.0
"""Seconds that a whole answer may take, however steadily it drips."""

CHARS_PER_TOKEN: Final = 32
"""Characters that a token has at most, by far: who sends more than its tokens could be is not listened to."""

BYTES_PER_TOKEN: Final = 6
"""Where fewer tokens were counted than this makes of a request, it is worth looking whether all of it was read."""


def unpriced(_: int, __: int) -> int | None:
    """Nobody knows."""
    return None


class OpenAICompatible:
    """Streams chat completions. `cost` puts a price on a usage; `price` bounds what a request may cost."""

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        card: ModelCard | None = None,
        price: Callable[[int, int], int | None] = unpriced,
        cost: Callable[[Usage], int | None] = lambda usage: usage.money,
        longest: float = LONGEST,
    ) -> None:
        self.name = f"{endpoint.provider}:{model}"
        self.card = card or ModelCard()
        self.price = price
        self._cost = cost
        self._endpoint = endpoint
        self._encoding = Encoding(endpoint.provider, model, self.card)
        self._longest = longest

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask, and read the answer as it comes."""
        endpoint = self._endpoint
        faults = Faults(self.name, endpoint.address, endpoint.secrets(), idle=endpoint.idle, longest=self._longest)
        reading = Reading(endpoint.provider, request.max_output * CHARS_PER_TOKEN + 4096)
        try:
            async with Listening(self._asked(request, reading, faults)) as events:
                async for event in events:
                    yield event
        except (Complaint, TooMuch, aiohttp.ClientError, OSError, ValueError, RecursionError) as error:
            yield _fault(error, faults, local=endpoint.local)

    async def _asked(self, request: ModelRequest, reading: Reading, faults: Faults) -> AsyncIterator[ModelEvent]:
        sent = self._encoding.body(request)
        async with asyncio.timeout(self._longest), self._endpoint.post(sent) as response:
            body = Body(reading, faults, response)
            async for piece in response.content.iter_any():
                for event in body.feed(piece):
                    yield event
                if body.over:
                    break
            for event in body.end():
                yield event
        for event in () if body.failed else self._ended(request, reading, faults, len(sent)):
            yield event

    async def close(self) -> None:
        """Let the connections of its endpoint go."""
        await self._endpoint.close()

    def _ended(self, request: ModelRequest, reading: Reading, faults: Faults, size: int) -> Iterator[ModelEvent]:
        usage, failed = reading.counted, self._failed(request, reading, faults, size)
        if failed is None:
            yield from reading.rest()
        if usage is not None:
            yield evolve(usage, money=self._cost(usage))
        yield failed or reading.finished(self.name)

    def _failed(self, request: ModelRequest, reading: Reading, faults: Faults, size: int) -> Failed | None:
        """What is wrong with an answer that nobody has complained about."""
        if not reading.begun:
            return faults.fault("malformed", "it said nothing at all")
        if not reading.complete:
            return faults.fault("cut_off", "its end never came")
        told = reading.usage.input if reading.usage is not None else 0
        if 0 < told < size / BYTES_PER_TOKEN and told < 0.8 * (words := words_of(request)):
            return faults.fault("truncated", f"it counted {told} tokens where at least {words} were sent")
        return None


def _fault(error: Exception, faults: Faults, *, local: bool) -> Failed:
    """What went wrong, whatever it was."""
    match error:
        case Complaint():
            return faults.complained(error.said)
        case TooMuch():
            return faults.fault("too_large", str(error))
        case RecursionError():
            return faults.fault("malformed", "it is nested too deeply")
        case _:
            return faults.raised(error, local=local)
