import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.adapters.models import pricing
from greenroom.adapters.models.pricing import FREE, Flat, Price, Rates, Unknown, price_of
from greenroom.core.ports.model import Usage

COUNTS = st.integers(min_value=0, max_value=10**6)
OWN = Rates(input=3_000_000, output=15_000_000, cached=300_000, written=3_750_000)


def test_a_known_model_costs_what_its_provider_says() -> None:
    price = price_of("openai", "gpt-4o-mini", local=False, own={})
    assert price.of(Usage(input=1000, output=100)) == 210
    assert price.of(Usage(input=1000, output=100, cached=1000)) == 135
    assert price.most(1000, 100) == 210


def test_a_price_that_grows_with_the_request_is_bounded_by_its_dearest_step() -> None:
    price = price_of("google", "gemini-2.5-pro", local=False, own={})
    low, high = (Usage(input=size, output=1000, cached=size // 3) for size in (100_000, 300_000))
    assert (price.of(low) or 0) * 2 < (price.of(high) or 0)
    for usage in (low, high):
        assert (price.of(usage) or 0) <= (price.most(usage.input, usage.output) or 0)
    assert price.of(Usage(input=1, money=7)) == 7


def test_a_price_that_changes_with_the_hour_is_bounded_by_its_dearest_one() -> None:
    price = price_of("deepseek", "deepseek-chat", local=False, own={})
    usage = Usage(input=100_000, output=10_000)
    worst = max(pricing._worked_out("deepseek", "deepseek-chat", usage, hour) for hour in pricing._HOURS)
    assert (price.most(usage.input, usage.output) or 0) >= worst


def test_what_a_person_says_a_model_costs_is_what_it_costs() -> None:
    assert price_of("openai", "gpt-4o-mini", local=False, own={"openai:gpt-4o-mini": OWN}).most(10**6, 0) == 3_750_000
    assert price_of("ours", "m", local=True, own={"m": OWN}).most(0, 10**6) == 15_000_000


def test_a_model_of_this_machine_is_free_and_an_unknown_one_is_not() -> None:
    assert price_of("ollama", "qwen3", local=True, own={}) is FREE
    unknown: Price = price_of("nobody", "nothing", local=False, own={})
    assert unknown.most(1, 1) is None
    assert (unknown.of(Usage(input=5)), unknown.of(Usage(input=5, money=9))) == (None, 9)


@given(COUNTS, COUNTS, st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_no_call_costs_more_than_was_reserved(
    read: int, written: int, cached: float, stored: float, flat: bool
) -> None:
    rates = OWN if flat else Rates(input=7, output=9)
    from_cache = int(read * cached)
    usage = Usage(input=read, output=written, cached=from_cache, written=int((read - from_cache) * stored))
    assert 0 <= Flat(rates).of(usage) <= Flat(rates).most(read, written)


@pytest.mark.parametrize("provider", ["bedrock", "moonshot", "xai", "zhipu"])
def test_providers_are_found_under_the_names_that_the_prices_have(provider: str) -> None:
    from_them = {
        "bedrock": "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "moonshot": "kimi-k2-0905-preview",
        "xai": "grok-4",
        "zhipu": "glm-4.7",
    }
    assert not isinstance(price_of(provider, from_them[provider], local=False, own={}), Unknown)
