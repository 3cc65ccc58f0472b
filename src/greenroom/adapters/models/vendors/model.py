"""A model of a vendor with a language of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model

from greenroom.adapters.models.openai.model import CHARS_PER_TOKEN, LONGEST, unpriced
from greenroom.adapters.models.openai.reading import TooMuch
from greenroom.adapters.models.vendors.asking import Asking
from greenroom.adapters.models.vendors.faults import RAISED, VendorFaults
from greenroom.adapters.models.vendors.reading import Piece, Reading, heard
from greenroom.adapters.models.vendors.settings import Manner
from greenroom.adapters.models.vendors.vendor import Vendor
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import Failed, ModelCard, ModelEvent, ModelRequest, Usage


class VendorModel:
    """Asks through pydantic-ai. `cost` puts a price on a usage; `price` bounds what a request may cost."""

    def __init__(
        self,
        vendor: Vendor,
        model: str,
        *,
        card: ModelCard | None = None,
        price: Callable[[int, int], int | None] = unpriced,
        cost: Callable[[Usage], int | None] = lambda usage: usage.money,
        longest: float = LONGEST,
    ) -> None:
        self.name = f"{vendor.provider}:{model}"
        self.card = card or ModelCard()
        self.price = price
        self._cost = cost
        self._vendor = vendor
        self._model = model
        self._asking = Asking(vendor.provider, self.card)
        self._longest = longest

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask, and read the answer as it comes."""
        vendor = self._vendor
        faults = VendorFaults(self.name, vendor, vendor.key(), longest=self._longest)
        reading = Reading(vendor.provider, request.max_output * CHARS_PER_TOKEN + 4096)
        try:
            pieces = self._asked(vendor.model(self._model), request)
        except UserError as error:
            yield faults.unmade(error)
            return
        try:
            async with asyncio.timeout(self._longest), aclosing(reading.events(pieces)) as events:
                async for event in events:
                    yield event
        except TooMuch as error:
            yield faults.fault("too_large", str(error))
        except RAISED as error:
            yield faults.raised(error)
        else:
            for event in self._ended(reading, faults):
                yield event

    def _asked(self, model: Model, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        manner = Manner(self._vendor.provider, self.card, model)
        return heard(
            model,
            self._asking.messages(request.messages),
            manner.settings(request, idle=self._vendor.idle),
            manner.parameters(request, self._asking.tools(request.tools)),
            streaming=request.streaming,
        )

    def _ended(self, reading: Reading, faults: VendorFaults) -> Iterator[ModelEvent]:
        usage, failed = reading.usage, _failed(reading, faults)
        if failed is None:
            yield from reading.rest()
        if usage is not None:
            yield evolve(usage, money=self._cost(usage))
        yield failed or reading.finished(self.name)

    async def close(self) -> None:
        """Let the connections go, also those of the vendor's other models."""
        await self._vendor.close()


def _failed(reading: Reading, faults: VendorFaults) -> Failed | None:
    """What is wrong with an answer that nobody has complained about."""
    if not reading.said:
        return faults.fault("cut_off", "its end never came")
    if reading.broken:
        return faults.fault("malformed", reading.said)
    return None
