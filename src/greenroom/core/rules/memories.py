"""Rules for the team's short-term memory: any of its agents may write in it, and it stays small enough to be read."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, MemoryId, memory_id
from greenroom.core.base.records import evolve
from greenroom.core.rules.draft import Draft, Verdict, is_trusted
from greenroom.core.rules.intents import ClearMemory, SaveMemory
from greenroom.core.state.memory import MemoriesCleared, Memory, MemorySaved
from greenroom.core.state.origin import merged as all_of
from greenroom.core.state.world import World

MOST: Final = 1_000
"""Memories that a team has at once."""

LONGEST: Final = 20_000
"""Characters of one memory."""

TAGS: Final = 20
TAG: Final = 60
"""Tags of a memory, and characters of a tag."""


def save_memory(draft: Draft, intent: SaveMemory, by: str) -> Verdict:
    """A new memory, or another content for an old one; those it is merged from go."""
    refused = _may_remember(draft.world, by) or _misfit(intent) or _missing(draft.world, intent)
    if refused is not None:
        return refused
    old = draft.world.memories[intent.memory_id] if intent.memory_id is not None else None
    merged = tuple(one for one in dict.fromkeys(intent.merged_from) if one != intent.memory_id)
    if old is None and len(draft.world.memories) - len(merged) >= MOST:
        why = f"The short-term memory is full: it holds {MOST:,} memories."
        return Rejected(code="memory_full", why=why, hint="Clear or merge some first.")
    memory = _new(draft, intent, by) if old is None else _updated(draft, old, intent)
    origins = memory.origins
    for one in merged:
        origins = all_of(origins, draft.world.memories[one].origins)
    memory = evolve(
        memory,
        merged_from=tuple(dict.fromkeys((*memory.merged_from, *merged))),
        origins=all_of(origins, draft.read),
    )
    draft.emit(MemorySaved(at=draft.now, memory=memory))
    return None


def _new(draft: Draft, intent: SaveMemory, by: str) -> Memory:
    return Memory(
        memory_id=memory_id(draft.now, draft.world.team.last_memory),
        type="short_term",
        content=intent.content,
        tags=intent.tags,
        created_at=draft.now,
        by=by,
    )


def _updated(draft: Draft, old: Memory, intent: SaveMemory) -> Memory:
    return evolve(old, content=intent.content, tags=intent.tags, updated_at=draft.now)


def clear_memory(draft: Draft, intent: ClearMemory, by: str) -> Verdict:
    """These go. One that somebody else has cleared meanwhile is gone as it should be; but one at least was there."""
    refused = _may_remember(draft.world, by)
    if refused is not None:
        return refused
    there = tuple(one for one in dict.fromkeys(intent.memory_ids) if one in draft.world.memories)
    if not there:
        return _unknown(intent.memory_ids)
    draft.emit(MemoriesCleared(at=draft.now, memory_ids=there))
    return None


def _may_remember(world: World, by: str) -> Verdict:
    if AgentId(by) in world.agents or is_trusted(world, by):
        return None
    return Rejected(code="not_in_team", why=f"{by!r} is not in this team, whose memory it is.")


def _misfit(intent: SaveMemory) -> Verdict:
    """What does not fit into a memory."""
    if not intent.content.strip():
        return Rejected(code="empty_memory", why="A memory without content is none.", hint="Say what to remember.")
    if len(intent.content) > LONGEST:
        why = f"The memory has {len(intent.content):,} characters; {LONGEST:,} are allowed."
        return Rejected(code="memory_too_long", why=why, hint="Save what matters of it, or make an artifact of it.")
    if len(intent.tags) > TAGS or not all(one.strip() and len(one) <= TAG for one in intent.tags):
        why = f"A memory has {TAGS} tags at most, none of them blank or longer than {TAG} characters."
        return Rejected(code="bad_tags", why=why, hint="Use a few short words that others would look for.")
    return None


def _missing(world: World, intent: SaveMemory) -> Verdict:
    named = (*((intent.memory_id,) if intent.memory_id is not None else ()), *intent.merged_from)
    gone = tuple(one for one in named if one not in world.memories)
    return _unknown(gone) if gone else None


def _unknown(names: tuple[MemoryId, ...]) -> Rejected:
    why = f"There is no memory {', '.join(map(repr, names[:5])) or 'to clear'} in the short-term memory."
    return Rejected(code="unknown_memory", why=why, hint="retrieve_memory shows the ids of those that there are.")
