"""The long-term memories of a workspace: where they are, which are trusted, and what applying a run does with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from greenroom.adapters.storage.memory_files import FOREIGN, PROJECT, MemoryFiles
from greenroom.app.messages import count_things
from greenroom.app.settings.layers import PROJECT_FOLDER, is_shared_folder
from greenroom.app.trust import TrustItem, hash_text, open_trust_store
from greenroom.core.base.records import encode, evolve
from greenroom.core.ports.text_index import TextIndex
from greenroom.core.state.knowledge import Memory
from greenroom.core.state.team_state import TeamState

MEMORY_FOLDER: Final = f"{PROJECT_FOLDER}/memory"


def open_memories(home: Path, root: Path, get_index: Callable[[], TextIndex]) -> MemoryFiles:
    """Return the memories of a workspace. A shared folder like /tmp has none of its own."""

    def is_trusted(foreign: Mapping[str, str]) -> bool:
        return bool(foreign) and open_trust_store().make_trust_check(root)(describe_foreign(foreign))

    project = None if is_shared_folder(root) else root / MEMORY_FOLDER
    return MemoryFiles(home / "memory", project, get_index, is_trusted)


def describe_foreign(foreign: Mapping[str, str]) -> TrustItem:
    """Describe the memories that came with a workspace, for a person. The digest covers all of them."""
    shown = count_things("memory", len(foreign))
    return TrustItem(kind="memory", name=MEMORY_FOLDER, shown=shown, digest=hash_text(encode(foreign).decode()))


def find_memory_items(memories: MemoryFiles) -> tuple[TrustItem, ...]:
    """Return what needs trust among the memories of a workspace."""
    foreign = memories.list_foreign()
    return (describe_foreign(foreign),) if foreign else ()


def is_foreign(memory: Memory) -> bool:
    """Return whether a memory came with the workspace, and the person does not trust it."""
    return FOREIGN in memory.origins


def list_kept(state: TeamState) -> list[Memory]:
    """Return the memories of the project that a run keeps until it is applied, oldest first."""
    return [state.memories[name] for name in sorted(state.memories) if state.memories[name].type == PROJECT]


def list_unsaved(memories: MemoryFiles, state: TeamState) -> list[Memory]:
    """Return the memories that a run keeps and that are not yet among the project's."""
    return [memory for memory in list_kept(state) if not _is_saved(memories, memory)]


def _is_saved(memories: MemoryFiles, memory: Memory) -> bool:
    """Return whether a kept memory is stored, also if a person has changed it since."""
    found = memories.get(PROJECT, (memory.memory_id,))
    return any(stored.content == memory.content or FOREIGN not in stored.origins for stored in found)


def save_kept(memories: MemoryFiles, state: TeamState) -> int:
    """Save the memories that a run kept. Return how many were not there."""
    kept = list_unsaved(memories, state)
    for memory in kept:
        memories.save(evolve(memory, updated_at=None))
    return len(kept)


def take_back(memories: MemoryFiles, state: TeamState) -> int:
    """Remove the memories that a run kept, and restore those that they replaced. Return how many were there."""
    count = 0
    for memory in reversed(list_kept(state)):
        if any(found.content == memory.content for found in memories.get(PROJECT, (memory.memory_id,))):
            memories.restore(PROJECT, memory.merged_from)
            count += len(memories.remove(PROJECT, (memory.memory_id,)))
    return count
