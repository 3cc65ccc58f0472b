"""Short-term memory: a store in the team itself. It survives a crash, a fork has its own, and it goes with the team."""

from __future__ import annotations

from collections.abc import Sequence

from greenroom.core.base.errors import ModelFault, Rejected
from greenroom.core.base.ids import MemoryId
from greenroom.core.ports.executor import Bench
from greenroom.core.ports.recall import Remembered, Wanted
from greenroom.core.rules.decide import decide
from greenroom.core.rules.intents import ClearMemory, Consequence, SaveMemory
from greenroom.core.state.memory import Memory, MemoryType
from greenroom.core.state.step import Effect


class ShortTerm:
    """It reads the world and returns intents: what is remembered is in the log, and nowhere else."""

    type: MemoryType = "short_term"
    effect: Effect = "pure"

    async def find(self, bench: Bench, wanted: Wanted) -> Sequence[Memory]:
        """Ids are times, so the newest have the highest."""
        memories = bench.world.memories
        return [memories[one] for one in sorted(memories, reverse=True) if wanted.fits(memories[one])]

    async def save(self, bench: Bench, memories: Sequence[Remembered]) -> tuple[Consequence, ...]:
        """As intents, if the rules would agree to all of them now."""
        intents = tuple(
            SaveMemory(content=one.content, tags=one.tags, memory_id=one.memory_id, merged_from=one.merged_from)
            for one in memories
        )
        _tried(bench, intents)
        return intents

    async def clear(self, bench: Bench, memories: Sequence[MemoryId]) -> tuple[Consequence, ...]:
        """As one intent."""
        intents = (ClearMemory(memory_ids=tuple(memories)),)
        _tried(bench, intents)
        return intents


def _tried(bench: Bench, intents: Sequence[Consequence]) -> None:
    """What the rules say, one after the other. They are asked again when it counts: others are at work meanwhile."""
    world = bench.world
    for intent in intents:
        decided = decide(world, intent, by=bench.agent.agent_id, now=world.at)
        if isinstance(decided, Rejected):
            raise ModelFault(f"{decided} Nothing was changed.")
        world = decided.world
