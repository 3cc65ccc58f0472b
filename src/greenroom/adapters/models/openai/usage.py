"""Read token counts and costs of a response, under the names of each provider, and doubt what cannot be."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from greenroom.core.base.errors import translate
from greenroom.core.ports.model import Model, ModelRequest, Usage

INPUT_FIELDS: Final = ("prompt_tokens", "input_tokens")
OUTPUT_FIELDS: Final = ("completion_tokens", "output_tokens")
DETAIL_FIELDS: Final = ("prompt_tokens_details", "input_tokens_details")
COUNT_FIELDS: Final = (*INPUT_FIELDS, *OUTPUT_FIELDS, "total_tokens")
ANTHROPIC_FIELDS: Final = frozenset({"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"})
CACHED_FIELDS: Final = ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
CACHE_WRITE_FIELDS: Final = ("cache_creation_input_tokens", "cache_write_tokens", "cache_creation_tokens")

HIDDEN_INPUT_TOKENS: Final = 4096  # that a provider may add to a request: its own instructions for tools
HIDDEN_FEES: Final = 50_000  # that it may add to the price of the tokens, in millionths of a dollar: for a search
MAX_TOKEN_PRICE: Final = 1_000  # more than any model costs per token, in millionths of a dollar


def find_believable_usage(
    usage: Usage | None, request: ModelRequest, model: Model, *, sent: int, received: int
) -> Usage | None:
    """Return the usage; None, with a warning, if a request of `sent` bytes and an answer of `received` characters
    cannot have it. The bytes of an image are not counted."""
    if usage is None:
        return None
    card, max_output = model.card, min(request.max_output, model.card.output)
    media = [item for message in request.messages for item in message.media]
    sent -= sum((len(item.data) + 2) // 3 * 4 for item in media if card.images and item.media_type.startswith("image/"))
    max_input = min(2 * sent + HIDDEN_INPUT_TOKENS, max(card.window, sent)) + 4 * len(media) * card.image_tokens
    # Some providers count thoughts beside the maximum, and some servers do not enforce it.
    most = max(max_output * 9 // 8 + 256 + min(usage.thought, 4 * max_output), received)
    charged = 2 * (model.price(max_input, max_output) or 0) or usage.amounts.tokens * MAX_TOKEN_PRICE
    if usage.input > max_input or usage.output > most:
        doubt = translate("provider_faults.impossible_usage", model=model.name, tokens=usage.amounts.tokens)
    elif (usage.money or 0) > HIDDEN_FEES + charged:
        doubt = translate("provider_faults.impossible_cost", model=model.name, cost=usage.amounts.money / 1_000_000)
    else:
        return usage
    logging.getLogger(__name__).warning("%s", doubt)
    return None


def find_usage(chunk: Mapping[str, object]) -> Usage | None:
    """Return the usage of a chunk or body: at the top, in its choice, or under the names of Groq and llama.cpp."""
    usage = chunk.get("usage") or _find_inner_usage(chunk.get("choices")) or _find_inner_usage(chunk.get("x_groq"))
    if usage is not None:
        return read_usage(usage) if isinstance(usage, dict) else None
    timings = chunk.get("timings")
    return _read_timings(timings) if isinstance(timings, dict) else None


def read_usage(usage: Mapping[str, object]) -> Usage | None:
    """Read a usage object; None if it contains no count."""
    counts = _read_count(usage, INPUT_FIELDS), _read_count(usage, OUTPUT_FIELDS), parse_count(usage.get("total_tokens"))
    if all(count is None for count in counts) or any(map(_is_negative, map(usage.get, COUNT_FIELDS))):
        return None
    read_, written, total = (count or 0 for count in counts)
    if not read_ + written + total:
        return None  # all zero means that the provider did not count
    reasoning = _read_detail_count(usage, ("completion_tokens_details", "output_tokens_details"), ("reasoning_tokens",))
    reasoning = reasoning or parse_count(usage.get("reasoning_tokens")) or 0
    cached = _read_count(usage, CACHED_FIELDS) or _read_detail_count(usage, DETAIL_FIELDS, CACHED_FIELDS)
    stored = _read_count(usage, CACHE_WRITE_FIELDS) or _read_detail_count(usage, DETAIL_FIELDS, CACHE_WRITE_FIELDS)
    # Anthropic does not include cached tokens in the input. Where they are included, the two parts may overlap.
    all_counts, is_anthropic = read_ + cached + stored + written, usage.keys() >= ANTHROPIC_FIELDS
    if max(cached, stored) > read_ or (total == all_counts if total else is_anthropic):
        read_ += cached + stored
    cached = min(cached, read_)
    # Some providers do not count thoughts as output. Then the total shows it, or thoughts exceed the output.
    written = max(written + reasoning if reasoning > written else written, total - read_)
    return Usage(
        input=read_,
        output=written,
        cached=cached,
        written=min(stored, read_ - cached),
        thought=reasoning,
        money=_read_cost(usage),
    )


def _is_negative(value: object) -> bool:
    return isinstance(value, int | float) and value < 0


def parse_count(value: object) -> int | None:
    """Return a plausible, non-negative count; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return int(value)


def _read_timings(timings: Mapping[str, object]) -> Usage | None:
    fresh, output, cached = (parse_count(timings.get(name)) for name in ("prompt_n", "predicted_n", "cache_n"))
    if fresh is None and output is None:
        return None
    return Usage(input=(fresh or 0) + (cached or 0), output=output or 0, cached=cached or 0)


def _find_inner_usage(holder: object) -> object:
    """Return the usage inside a choice or another object; None if there is none."""
    if isinstance(holder, list):
        holder = holder[0] if holder else None
    return (holder.get("usage") or None) if isinstance(holder, dict) else None


def _read_count(usage: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    for name in names:
        if name in usage and (count := parse_count(usage[name])) is not None:
            return count
    return None


def _read_detail_count(usage: Mapping[str, object], holders: tuple[str, ...], names: tuple[str, ...]) -> int:
    for holder in holders:
        details = usage.get(holder)
        if isinstance(details, dict):
            return _read_count(details, names) or 0
    return 0


def _read_cost(usage: Mapping[str, object]) -> int | None:
    """Return the cost that OpenRouter reports, including that of the user's own provider key."""
    charged, details = _parse_dollars(usage.get("cost")), usage.get("cost_details")
    upstream = (
        _parse_dollars(details.get("upstream_inference_cost"))
        if isinstance(details, dict) and usage.get("is_byok")
        else 0
    )
    return None if charged is None else charged + (upstream or 0)


def _parse_dollars(cost: object) -> int | None:
    """Convert dollars to microdollars, rounded up, so that a limit is never exceeded."""
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < 1e6:
        return None
    return -int(-cost * 1_000_000 // 1)
