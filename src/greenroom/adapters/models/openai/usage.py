"""Token counts, wherever a provider puts them and whatever it calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from greenroom.core.ports.model import Usage

INPUT: Final = ("prompt_tokens", "input_tokens")
OUTPUT: Final = ("completion_tokens", "output_tokens")
DETAILS: Final = ("prompt_tokens_details", "input_tokens_details")
CACHED: Final = ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
WRITTEN: Final = ("cache_creation_input_tokens", "cache_write_tokens", "cache_creation_tokens")


def found_in(chunk: Mapping[str, object]) -> Usage | None:
    """The usage that a chunk or a body tells of: at the top, in its choice, under Groq's or llama.cpp's own name."""
    told = chunk.get("usage") or _inside(chunk.get("choices")) or _inside(chunk.get("x_groq"))
    if told is not None:
        return read(told) if isinstance(told, dict) else None
    timings = chunk.get("timings")
    return _timed(timings) if isinstance(timings, dict) else None


def read(told: Mapping[str, object]) -> Usage | None:
    """Read one usage object; None when it holds no count at all."""
    known = _count(told, INPUT), _count(told, OUTPUT), number(told.get("total_tokens"))
    if all(one is None for one in known):
        return None
    read_, written, total = (one or 0 for one in known)
    if not read_ + written + total:
        return None  # nothing costs nothing: whoever says so has not counted
    thought = _detail(told, ("completion_tokens_details", "output_tokens_details"), ("reasoning_tokens",))
    thought = thought or number(told.get("reasoning_tokens")) or 0
    # Some do not count what was thought as written: then only the total tells, or that it is more than all.
    written = max(written + thought if thought > written else written, total - read_)
    cached = _count(told, CACHED) or _detail(told, DETAILS, CACHED)
    stored = _count(told, WRITTEN) or _detail(told, DETAILS, WRITTEN)
    if cached + stored > read_:
        read_ += cached + stored  # Anthropic's way of counting: what came from the cache is not in the rest
    return Usage(
        input=read_,
        output=written,
        cached=cached,
        written=stored,
        thought=thought,
        money=_cost(told),
    )


def number(value: object) -> int | None:
    """A count: not negative, and not what only looks like one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return int(value)


def _timed(timings: Mapping[str, object]) -> Usage | None:
    new, said, cached = (number(timings.get(name)) for name in ("prompt_n", "predicted_n", "cache_n"))
    if new is None and said is None:
        return None
    return Usage(input=(new or 0) + (cached or 0), output=said or 0, cached=cached or 0)


def _inside(holder: object) -> object:
    """The usage in a choice, or in another object, if there is one."""
    if isinstance(holder, list):
        holder = holder[0] if holder else None
    return (holder.get("usage") or None) if isinstance(holder, dict) else None


def _count(told: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    return next((found for name in names if (found := number(told.get(name))) is not None), None)


def _detail(told: Mapping[str, object], holders: tuple[str, ...], names: tuple[str, ...]) -> int:
    for holder in holders:
        details = told.get(holder)
        if isinstance(details, dict):
            return _count(details, names) or 0
    return 0


def _cost(told: Mapping[str, object]) -> int | None:
    """What OpenRouter says it took, and what it made the user's own provider take."""
    taken, details = _money(told.get("cost")), told.get("cost_details")
    beyond = _money(details.get("upstream_inference_cost")) if isinstance(details, dict) and told.get("is_byok") else 0
    return None if taken is None else taken + (beyond or 0)


def _money(cost: object) -> int | None:
    """Dollars, as OpenRouter says them, in millionths; rounded up, because a cap is a cap."""
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < 1e6:
        return None
    return -int(-cost * 1_000_000 // 1)
