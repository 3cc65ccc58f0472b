"""Prices of models: from the settings, else from genai-prices. Local models are free; other prices are unknown."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Final, Protocol

from greenroom.core.base.records import evolve, record
from greenroom.core.ports.model import Usage

MICRODOLLARS: Final = 1_000_000

_GENAI_PRICES_NAMES: Final = {
    "bedrock": "aws",
    "moonshot": "moonshotai",
    "xai": "x-ai",
    "zhipu": "zhipuai",
}
"""Names of providers in genai-prices that differ from ours."""


@record
class TokenRates:
    """Microdollars per million tokens. Without a cache rate, cached tokens cost as much as others."""

    input: int
    output: int
    cached: int | None = None
    written: int | None = None


class ModelPrice(Protocol):
    """The price of one model."""

    def compute_max_cost(self, read: int, written: int) -> int | None:
        """Return the maximum cost of this many tokens; None if it is unknown."""
        ...

    def compute_cost(self, usage: Usage) -> int | None:
        """Return the cost of a call; None if it is unknown."""
        ...


class FlatPrice:
    """A price with fixed rates."""

    def __init__(self, rates: TokenRates) -> None:
        self._rates = rates

    def compute_max_cost(self, read: int, written: int) -> int:
        """Return the maximum cost: all input at the highest input rate."""
        rates = self._rates
        return _round_up(read * max(rates.input, rates.cached or 0, rates.written or 0) + written * rates.output)

    def compute_cost(self, usage: Usage) -> int:
        """Return the cost that the provider reports, else the cost of the tokens."""
        if usage.money is not None:
            return usage.money
        rates = self._rates
        cached = rates.input if rates.cached is None else rates.cached
        stored = rates.input if rates.written is None else rates.written
        fresh = usage.input - usage.cached - usage.written
        return _round_up(
            fresh * rates.input + usage.cached * cached + usage.written * stored + usage.output * rates.output
        )


class UnknownPrice:
    """An unknown price. Only the provider's own report gives the cost of a call."""

    def compute_max_cost(self, _: int, __: int) -> None:
        """Return None."""

    def compute_cost(self, usage: Usage) -> int | None:
        """Return the cost that the provider reports."""
        return usage.money


class ListedPrice:
    """A price from genai-prices. It may depend on the length of the request and the time of day."""

    def __init__(self, provider: str, model: str) -> None:
        self._model = (provider, model)

    def compute_max_cost(self, read: int, written: int) -> int:
        """Return the cost at the most expensive hour and cache usage."""
        whole = Usage(input=read, output=written)
        usages = (whole, evolve(whole, cached=read), evolve(whole, written=read))
        return max(_calculate_price(*self._model, usage, hour) for usage in usages for hour in _PRICE_HOURS)

    def compute_cost(self, usage: Usage) -> int:
        """Return the cost that the provider reports, else the cost of the tokens."""
        return _calculate_price(*self._model, usage) if usage.money is None else usage.money


_TODAY: Final = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
_PRICE_HOURS: Final = tuple(_TODAY + timedelta(hours=hour) for hour in range(0, 24, 2))
"""Hours to compare: some models are cheaper at night."""

FREE_PRICE: Final = FlatPrice(TokenRates(input=0, output=0))


def find_price(provider: str, model: str, *, local: bool, own_rates: Mapping[str, TokenRates]) -> ModelPrice:
    """Return the price of a model. `own_rates` holds rates from the settings, by `provider:model` or model."""
    rates = own_rates.get(f"{provider}:{model}") or own_rates.get(model)
    if rates is not None:
        return FlatPrice(rates)
    return FREE_PRICE if local else _find_listed_price(_GENAI_PRICES_NAMES.get(provider, provider), model)


@cache
def _find_listed_price(provider: str, model: str) -> ModelPrice:
    with contextlib.suppress(LookupError):
        _calculate_price(provider, model, Usage(input=1))
        return ListedPrice(provider, model)
    return UnknownPrice()


def _calculate_price(provider: str, model: str, usage: Usage, at: datetime | None = None) -> int:
    """Return the cost in microdollars from genai-prices. Raise `LookupError` for an unknown model."""
    import genai_prices

    tokens = genai_prices.Usage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cached,
        cache_write_tokens=usage.written,
    )
    price = genai_prices.calc_price(tokens, model_ref=model, provider_id=provider, genai_request_timestamp=at)
    return -int(-price.total_price * Decimal(MICRODOLLARS) // 1)


def _round_up(amount: int) -> int:
    """Divide by a million and round up, so that a limit is never exceeded."""
    return -(-amount // MICRODOLLARS)
