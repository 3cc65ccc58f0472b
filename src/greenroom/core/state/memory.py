"""Memories: what agents write down to find it again. Those of a team are its short-term memory, and go with it."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import MemoryId
from greenroom.core.base.records import record
from greenroom.core.state.origin import Labels

MemoryType = Literal["short_term", "agent", "project_long_term", "global_long_term"]
"""How far a memory reaches, and so where it is kept."""


@record
class Memory:
    """One memory, in whichever store. `merged_from` are memories that it took the place of; `by` is who saved it.

    `origins` is what those had read who wrote it.
    """

    memory_id: MemoryId
    type: MemoryType
    content: str
    created_at: int
    tags: tuple[str, ...] = ()
    updated_at: int | None = None
    merged_from: tuple[MemoryId, ...] = ()
    by: str = ""
    origins: Labels = ()


@record
class MemorySaved:
    """The team remembers this: a new memory, or another content of one that it had. What it is merged from is gone."""

    at: int
    memory: Memory


@record
class MemoriesCleared:
    """The team remembers these no longer."""

    at: int
    memory_ids: tuple[MemoryId, ...]


MemoryEvent = MemorySaved | MemoriesCleared
