"""Recall: where memories are kept and found again. One store for each type of memory; whoever asks chooses by type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from greenroom.core.base.ids import MemoryId
from greenroom.core.base.records import record
from greenroom.core.ports.executor import Bench
from greenroom.core.rules.intents import Consequence
from greenroom.core.state.knowledge import Memory, MemoryType
from greenroom.core.state.step import Effect


@record
class Wanted:
    """Which memories: those with one of the `tags`, with all of the `words` in them, with one of the `ids`.

    What is empty asks for nothing. Upper and lower case are the same.
    """

    tags: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    ids: tuple[MemoryId, ...] = ()

    def fits(self, memory: Memory) -> bool:
        """Whether it is one of them."""
        if self.ids and memory.memory_id not in self.ids:
            return False
        if self.tags and not {one.casefold() for one in self.tags} & {one.casefold() for one in memory.tags}:
            return False
        text = "\n".join((memory.content, *memory.tags)).casefold()
        return all(one.casefold() in text for one in self.words)


@record
class Remembered:
    """A memory to be: a new one, or another content for `memory_id`. It takes the place of what it is `merged_from`."""

    content: str
    tags: tuple[str, ...] = ()
    memory_id: MemoryId | None = None
    merged_from: tuple[MemoryId, ...] = ()


class Recall(Protocol):
    """A store of memories of one type. What cannot be done is a `ModelFault` that says why.

    What a store does not do itself it returns as intents: they are done in the same commit as the step's result.
    """

    @property
    def type(self) -> MemoryType:
        """The type of its memories."""
        ...

    @property
    def effect(self) -> Effect:
        """What class of effect a change here has: a store that only returns intents is *pure*."""
        ...

    async def find(self, bench: Bench, wanted: Wanted) -> Sequence[Memory]:
        """The memories that are wanted, newest first."""
        ...

    async def save(self, bench: Bench, memories: Sequence[Remembered]) -> tuple[Consequence, ...]:
        """Keep these, all of them or none."""
        ...

    async def clear(self, bench: Bench, memories: Sequence[MemoryId]) -> tuple[Consequence, ...]:
        """Keep these no longer."""
        ...
