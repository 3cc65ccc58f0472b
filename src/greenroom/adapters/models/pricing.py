"""What a model costs: the user's own word, else genai-prices; a model on this machine is free; else nobody knows."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Final, Protocol

from greenroom.core.base.records import evolve, record
from greenroom.core.ports.model import Usage

MILLION: Final = 1_000_000

_THEIR_NAMES: Final = {
    "bedrock": "aws",
    "moonshot": "moonshotai",
    "xai": "x-ai",
    "zhipu": "zhipuai",
}
"""What genai-prices calls a provider, where that differs."""


@record
class Rates:
    """Millionths of a dollar per million tokens. Where there is no rate for the cache, its tokens cost like others."""

    input: int
    output: int
    cached: int | None = None
    written: int | None = None


class Price(Protocol):
    """The price of one model."""

    def most(self, read: int, written: int) -> int | None:
        """What so many tokens cost at most."""
        ...

    def of(self, usage: Usage) -> int | None:
        """What a call has cost."""
        ...


class Flat:
    """A price that is the same for every token of a kind."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates

    def most(self, read: int, written: int) -> int:
        """As if nothing came from the cache, and everything went into it."""
        rates = self._rates
        return _up(read * max(rates.input, rates.cached or 0, rates.written or 0) + written * rates.output)

    def of(self, usage: Usage) -> int:
        """What the provider says it took, else what its tokens cost."""
        if usage.money is not None:
            return usage.money
        rates = self._rates
        cached = rates.input if rates.cached is None else rates.cached
        stored = rates.input if rates.written is None else rates.written
        fresh = usage.input - usage.cached - usage.written
        return _up(fresh * rates.input + usage.cached * cached + usage.written * stored + usage.output * rates.output)


class Unknown:
    """No price. Only what the provider itself says a call has cost is known."""

    def most(self, _: int, __: int) -> None:
        """Nobody knows."""

    def of(self, usage: Usage) -> int | None:
        """What the provider says."""
        return usage.money


class Listed:
    """A price of genai-prices. It may depend on the length of the request and on the time of day."""

    def __init__(self, provider: str, model: str) -> None:
        self._asked = (provider, model)

    def most(self, read: int, written: int) -> int:
        """At the dearest hour, with nothing or everything that is read from the cache, or into it."""
        whole = Usage(input=read, output=written)
        ways = (whole, evolve(whole, cached=read), evolve(whole, written=read))
        return max(_worked_out(*self._asked, usage, hour) for usage in ways for hour in _HOURS)

    def of(self, usage: Usage) -> int:
        """What the provider says it took, else what its tokens cost together."""
        return _worked_out(*self._asked, usage) if usage.money is None else usage.money


_TODAY: Final = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
_HOURS: Final = tuple(_TODAY + timedelta(hours=hour) for hour in range(0, 24, 2))
"""Some are cheaper at night."""

FREE: Final = Flat(Rates(input=0, output=0))


def price_of(provider: str, model: str, *, local: bool, own: Mapping[str, Rates]) -> Price:
    """The price of this model; `own` is what the settings say, by `provider:model` or by model."""
    rates = own.get(f"{provider}:{model}") or own.get(model)
    if rates is not None:
        return Flat(rates)
    return FREE if local else _known(_THEIR_NAMES.get(provider, provider), model)


@cache
def _known(provider: str, model: str) -> Price:
    with contextlib.suppress(LookupError):
        _worked_out(provider, model, Usage(input=1))
        return Listed(provider, model)
    return Unknown()


def _worked_out(provider: str, model: str, usage: Usage, at: datetime | None = None) -> int:
    """Millionths of a dollar, as genai-prices has it. `LookupError` when it does not know the model."""
    import genai_prices

    counted = genai_prices.Usage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cached,
        cache_write_tokens=usage.written,
    )
    price = genai_prices.calc_price(counted, model_ref=model, provider_id=provider, genai_request_timestamp=at)
    return -int(-price.total_price * Decimal(MILLION) // 1)


def _up(amount: int) -> int:
    """From millionths of millionths, rounded up: a cap is a cap."""
    return -(-amount // MILLION)
