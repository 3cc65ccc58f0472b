"""The memory organizer: merges memories that share tags, with a model, and loses none of them.

A merged memory is written before the old ones move away, and they can be brought back. A merge that was killed between
the two is completed by the next one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from greenroom.abilities.skills.prompts.builder import PACK
from greenroom.adapters.storage.memory_files import PROJECT, MemoryEntry, MemoryFiles, from_entry, is_id, to_entry
from greenroom.app.text_reader import TextReader
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.ids import MemoryId, memory_id
from greenroom.core.base.records import Data, evolve
from greenroom.core.base.text import add_fence
from greenroom.core.rules.knowledge import check_memory
from greenroom.core.state.knowledge import Memory, MemoryType
from greenroom.core.state.origin import merge_labels

MERGER: Final = "memory-organizer"
"""The author of merged memories, and the agent that merges."""

MAX_GROUP: Final = 20
MAX_GROUP_CHARS: Final = 60_000
"""Maximum number and characters of memories that are merged at once."""

AskModel: TypeAlias = Callable[[str], Awaitable[str]]


def group_memories(memories: Iterable[Memory], min_overlap: int) -> list[list[Memory]]:
    """Return groups whose memories share tags with their newest one: those that share most tags first, each memory in
    one group, newest first."""
    left = {memory.memory_id: memory for memory in sorted(memories, key=lambda memory: memory.memory_id, reverse=True)}
    tags = {name: frozenset(map(str.casefold, memory.tags)) for name, memory in left.items()}
    by_tag, groups = defaultdict[str, list[MemoryId]](list), list[list[Memory]]()
    for name in left:
        for tag in tags[name]:
            by_tag[tag].append(name)
    for overlap in range(max(map(len, tags.values()), default=0), min_overlap - 1, -1):
        for seed in [name for name in left if len(tags[name]) >= overlap]:
            near = (name for tag in tags[seed] for name in by_tag[tag] if name in left and seed in left)
            shared = Counter(near)
            group = [left[name] for name in sorted(shared, reverse=True) if shared[name] >= overlap]
            parts = _split_group(group)
            groups += parts
            for name in [memory.memory_id for part in parts for memory in part]:
                del left[name]
    return groups


def _split_group(group: Sequence[Memory]) -> list[list[Memory]]:
    """Split a group that is too large for one request. A single memory is left out."""
    parts, size = list[list[Memory]](), 0
    for memory in group:
        size += len(memory.content)
        if not parts or len(parts[-1]) == MAX_GROUP or size > MAX_GROUP_CHARS:
            parts.append([])
            size = len(memory.content)
        parts[-1].append(memory)
    return [part for part in parts if len(part) > 1]


class MemoryOrganizer:
    """Merges the memories of one scope. `started_at` is when, in milliseconds."""

    def __init__(self, files: MemoryFiles, type_: MemoryType, started_at: int) -> None:
        self._files = files
        self._type = type_
        self._started_at = started_at

    def find_groups(self, min_overlap: int, *, completes: bool) -> list[list[Memory]]:
        """Return the groups to merge. With `completes`, complete a merge that was interrupted first."""
        memories = self._files.find([self._type])
        replaced = {name for memory in self._keep_own(memories) for name in memory.merged_from}
        if completes:
            self._files.remove(self._type, replaced)
        return group_memories((memory for memory in memories if memory.memory_id not in replaced), min_overlap)

    def _keep_own(self, memories: Iterable[Memory]) -> list[Memory]:
        """Return the memories that were merged on this machine. Others may claim to replace anything."""
        foreign = self._files.list_foreign() if self._type == PROJECT else {}
        return [memory for memory in memories if memory.merged_from and memory.memory_id not in foreign]

    async def merge(self, group: Sequence[Memory], ask: AskModel, language: str) -> Memory:
        """Merge a group, newest first, into one memory. Raise `ModelFault` if the answer cannot be used."""
        shown = [
            f"{to_entry(memory).created_at:%Y-%m-%d} · {', '.join(memory.tags)}\n{memory.content}" for memory in group
        ]
        prompt = PACK.render(language, "merge_memories", {"memories": add_fence("\n\n---\n\n".join(shown))})
        content, tags = parse_merged(await ask(prompt))
        merged = Memory(
            memory_id=memory_id(self._started_at, ""),
            type=self._type,
            content=content,
            created_at=self._started_at,
            tags=tags,
            merged_from=tuple(memory.memory_id for memory in group),
            by=MERGER,
            origins=merge_labels((), (label for memory in group for label in memory.origins)),
        )
        return self._files.save(merged)

    def undo(self) -> list[Memory]:
        """Bring back what the last merging replaced. Return the merged memories, which are removed."""
        merged = [memory for memory in self._keep_own(self._files.find([self._type])) if memory.by == MERGER]
        newest = max((memory.created_at for memory in merged), default=0)
        last = [memory for memory in merged if memory.created_at == newest]
        for memory in last:
            self._files.restore(self._type, memory.merged_from)
        self._files.remove(self._type, [memory.memory_id for memory in last])
        return last


def parse_merged(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the content and tags in a model's answer. Raise `ModelFault` if there are none."""
    value = TextReader().read_yaml(text, "merged_memory")
    content, tags = (value.get("content"), value.get("tags")) if isinstance(value, Mapping) else (None, None)
    if not isinstance(content, str) or not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ModelFault("The answer has no <merged_memory> with content and tags.")
    distinct = tuple(dict.fromkeys(tag.strip() for tag in tags))
    if refused := check_memory(content, distinct):
        raise ModelFault(str(refused))
    return content.strip(), distinct


def to_fields(memory: Memory) -> Data:
    """Return a memory as its file holds it."""
    fields: Data = msgspec.to_builtins(to_entry(memory))
    return fields


def parse_records(text: str) -> list[msgspec.Raw]:
    """Split a list of memories. Raise `WorldFault` if it is none."""
    try:
        return msgspec.json.decode(text, type=list[msgspec.Raw])
    except msgspec.MsgspecError as error:
        raise WorldFault("memory.not_a_list", why=error) from None


def import_record(files: MemoryFiles, record: msgspec.Raw, *, overwrite: bool) -> bool:
    """Save an imported memory. Return False if its id exists and is not to be replaced. Raise `WorldFault` if the
    record is bad."""
    try:
        memory = from_entry(msgspec.json.decode(record, type=MemoryEntry))
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        raise WorldFault("memory.refused", why=error) from None
    return import_memory(files, memory, overwrite=overwrite)


def import_memory(files: MemoryFiles, memory: Memory, *, overwrite: bool = False) -> bool:
    """Save a memory from elsewhere. See `import_record`."""
    if not is_id(memory.memory_id):
        raise WorldFault("memory.bad_id", name=memory.memory_id[:80])
    if memory.type not in files.types or memory.type == "agent":
        raise WorldFault("memory.wrong_type", type=memory.type)
    if refused := check_memory(memory.content, memory.tags):
        raise WorldFault("memory.refused", why=refused)
    exists = bool(files.get(memory.type, (memory.memory_id,)))
    if not exists or overwrite:
        changed_at = memory.updated_at or memory.created_at
        files.save(evolve(memory, merged_from=(), updated_at=changed_at if exists else None))
    return overwrite or not exists
