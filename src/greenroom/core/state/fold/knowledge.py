"""How memory and artifact events change the world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from greenroom.core.base.records import evolve
from greenroom.core.state.artifact import ArtifactWritten, after
from greenroom.core.state.memory import MemoriesCleared, MemorySaved
from greenroom.core.state.world import World, artifact_key, without


def _memory_saved(world: World, event: MemorySaved) -> World:
    memory, memories = event.memory, world.memories
    for one in memory.merged_from:
        memories = without(memories, one)
    # Ids are given in the order of time, also when all before them are cleared.
    team = evolve(world.team, last_memory=max(world.team.last_memory, memory.memory_id))
    return evolve(world, team=team, memories=memories.set(memory.memory_id, memory))


def _memories_cleared(world: World, event: MemoriesCleared) -> World:
    memories = world.memories
    for one in event.memory_ids:
        memories = without(memories, one)
    return evolve(world, memories=memories)


def _artifact_written(world: World, event: ArtifactWritten) -> World:
    key = artifact_key(event.artifact.task_id, event.artifact.artifact_id)
    artifact = after(world.artifacts.get(key), event.artifact)
    return evolve(world, artifacts=world.artifacts.set(key, artifact))


FOLDS: Final[dict[type, Callable[[World, Any], World]]] = {
    MemorySaved: _memory_saved,
    MemoriesCleared: _memories_cleared,
    ArtifactWritten: _artifact_written,
}
