"""How memories are told of: each with its id, so that it can be named, and which tags there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from greenroom.core.state.memory import Memory

TAGS: Final = 40
"""Tags that are named."""


def told(memory: Memory) -> str:
    """One memory, whole."""
    when = f"saved {_time(memory.created_at)}"
    if memory.updated_at is not None:
        when += f", changed {_time(memory.updated_at)}"
    by = f" by {memory.by}" if memory.by else ""
    merged = f" · merged from {', '.join(memory.merged_from)}" if memory.merged_from else ""
    head = f"[{memory.memory_id}] {memory.type} · tags: {', '.join(memory.tags) or 'none'} · {when}{by}{merged}"
    return f"{head}\n{memory.content}"


def known(memories: Sequence[Memory]) -> str:
    """What could be asked for instead: the tags that there are, most used first."""
    if not memories:
        return "Nothing is remembered yet."
    counted = Counter(tag for memory in memories for tag in memory.tags)
    if not counted:
        return f"{_many(len(memories))}, none with a tag."
    named = ", ".join(f"{tag} ({count})" for tag, count in counted.most_common(TAGS))
    more = f" and {len(counted) - TAGS} more" if len(counted) > TAGS else ""
    return f"{_many(len(memories))}, with the tags: {named}{more}."


def _many(count: int) -> str:
    return "There is 1 memory" if count == 1 else f"There are {count} memories"


def _time(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
