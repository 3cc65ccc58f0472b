"""save_memory, retrieve_memory and clear_memory: what lasts beyond a window, a task or a team, found by tag and words.

The short-term memory is part of the team's log: it survives a crash, is copied by a fork, and is deleted with the team.
Long-term memories are in files, which a `LongTermMemory` reads and writes.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Annotated, Final, Protocol, TypeAlias

from msgspec import Meta

from greenroom.abilities.tools.tool import Arguments, CardedTool, build_schema, make_card, read_arguments
from greenroom.core.base.errors import ModelFault, Rejection
from greenroom.core.base.ids import MemoryId, memory_id
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.rules import intents
from greenroom.core.rules.decide import decide
from greenroom.core.rules.intents import Consequence
from greenroom.core.rules.knowledge import check_memory
from greenroom.core.state.knowledge import Memory, MemoryType
from greenroom.core.state.origin import Labels, merge_labels

SHORT_TERM: Final[MemoryType] = "short_term"
PROJECT: Final[MemoryType] = "project_long_term"
USES: Final[Mapping[MemoryType, str]] = {
    "short_term": "as long as this team",
    "agent": "your own, in all later tasks",
    "project_long_term": "for all later work in this project",
    "global_long_term": "for all projects of this person",
}
"""How far each type of memory reaches."""

MAX_SAVED: Final = 20
DEFAULT_SHOWN: Final = 20
MAX_SHOWN: Final = 100
MAX_CLEARED: Final = 100_000
MAX_TAGS_SHOWN: Final = 40
"""Maximum number of tags that are listed."""


class LongTermMemory(Protocol):
    """The long-term memories of these `types`. Calls block for a few milliseconds."""

    types: tuple[MemoryType, ...]

    def save(self, memory: Memory, agent: str = "") -> Memory:
        """Save a memory, or change it if it has `updated_at`. Remove those in its `merged_from`."""
        ...

    def remove(self, type_: MemoryType, ids: Iterable[str], agent: str = "") -> Sequence[MemoryId]:
        """Remove memories. Return the ids of those that existed."""
        ...

    def find(
        self, types: Iterable[MemoryType], agent: str = "", *, words: str = "", tags: Sequence[str] = (), limit: int
    ) -> Sequence[Memory]:
        """Return memories with any of the tags, best match for the words first; without words, newest first."""
        ...

    def get(self, type_: MemoryType, ids: Iterable[str], agent: str = "") -> Sequence[Memory]:
        """Return the memories with these ids that exist."""
        ...

    def count_tags(self, types: Iterable[MemoryType], agent: str = "") -> Mapping[str, int]:
        """Return how many memories have each tag."""
        ...

    def count_shared_tags(self) -> Mapping[str, int]:
        """Return how many memories of the project and of the person have each tag; not those of untrusted ones."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryScopes:
    """Which memories agents have: those of the team, and those of a `store`. With `keeps_project`, a new memory of the
    project stays in the team's log until the run's change is applied."""

    store: LongTermMemory | None = None
    keeps_project: bool = False

    @property
    def types(self) -> tuple[MemoryType, ...]:
        """The types of memory that are available."""
        return (SHORT_TERM, *(self.store.types if self.store is not None else ()))

    def is_in_log(self, type_: str) -> bool:
        """Whether new memories of this type are in the team's log."""
        return type_ == SHORT_TERM or (self.keeps_project and type_ == PROJECT)

    def select(self, names: Sequence[str]) -> tuple[MemoryType, ...]:
        """Return the named types, or all. Raise `ModelFault` for one that is not available."""
        for name in names:
            if name not in self.types:
                known = "is not set up here" if name in USES else "is not a type of memory"
                raise ModelFault(f"{name!r} {known}. There is: {', '.join(self.types)}.")
        return tuple(type_ for type_ in self.types if type_ in names or not names)

    def find_in_log(
        self, context: StepContext, types: Iterable[str], *, tags: Iterable[str] = (), words: Iterable[str] = ()
    ) -> list[Memory]:
        """Return the team's own memories with any of the tags and all of the words, newest first."""
        wanted_types, wanted_tags = set(types), set(map(str.casefold, tags))
        wanted_words = list(map(str.casefold, words))
        found = []
        for name in sorted(context.state.memories, reverse=True):  # ids sort by time
            memory = context.state.memories[name]
            text = "\n".join((memory.content, *memory.tags)).casefold()
            has_tag = not wanted_tags or not wanted_tags.isdisjoint(map(str.casefold, memory.tags))
            if memory.type in wanted_types and has_tag and all(word in text for word in wanted_words):
                found.append(memory)
        return found

    async def find(
        self, context: StepContext, types: Sequence[MemoryType], *, tags: Sequence[str], words: str, limit: int
    ) -> list[Memory]:
        """Return memories: the team's own, then the best of the store."""
        own = self.find_in_log(context, types, tags=tags, words=words.split())[:limit]
        stored = [type_ for type_ in types if type_ != SHORT_TERM]
        if self.store is None or not stored:
            return own
        replaced = {name for memory in context.state.memories.values() for name in memory.merged_from}
        agent = context.agent.spec.name
        found = await asyncio.to_thread(
            partial(self.store.find, stored, agent, words=words, tags=tags, limit=limit + len(replaced))
        )
        return [*own, *(memory for memory in found if memory.memory_id not in replaced)][:limit]

    async def describe_tags(self, context: StepContext, types: Sequence[MemoryType]) -> str:
        """Describe the existing tags, most used first."""
        counted = Counter(tag for memory in self.find_in_log(context, types) for tag in memory.tags)
        stored = [type_ for type_ in types if type_ != SHORT_TERM]
        if self.store is not None and stored:
            counted.update(await asyncio.to_thread(self.store.count_tags, stored, context.agent.spec.name))
        if counted:
            return f"There are the tags: {render_tags(counted)}."
        is_empty = not await self.find(context, types, tags=(), words="", limit=1)
        return "Nothing is remembered yet." if is_empty else "None has a tag."


def render_tags(counted: Mapping[str, int]) -> str:
    """List tags with how often they are used, most used first."""
    named = ", ".join(f"{tag} ({count})" for tag, count in Counter(counted).most_common(MAX_TAGS_SHOWN))
    return f"{named} and {len(counted) - MAX_TAGS_SHOWN} more" if len(counted) > MAX_TAGS_SHOWN else named


def _check_rules(context: StepContext, *wanted: Consequence) -> tuple[Consequence, ...]:
    """Return the intents if the rules accept them in order. The rules decide again at commit, because other agents work
    concurrently."""
    state = context.state
    for intent in wanted:
        decided = decide(state, intent, by=context.agent.agent_id, now=state.at)
        if isinstance(decided, Rejection):
            raise ModelFault(f"{decided} Nothing was changed.")
        state = decided.state
    return wanted


class NewMemory(Arguments, frozen=True):
    """A memory as the model passes it."""

    content: Annotated[str, Meta(description="What to remember, so that it is understood alone.")]
    tags: Annotated[tuple[str, ...], Meta(description="A few words by which it is found again.")] = ()
    memory_type: Annotated[str, Meta(description=f"How far it reaches; {SHORT_TERM} if left out.")] = SHORT_TERM
    id: Annotated[str, Meta(description="Of a memory whose content and tags this replaces.")] = ""
    merged_from: Annotated[tuple[str, ...], Meta(description="Ids of memories that this one takes the place of.")] = ()

    @property
    def distinct_tags(self) -> tuple[str, ...]:
        """Return the tags without duplicates, ignoring case."""
        tags: dict[str, str] = {}
        for tag in _drop_blank(self.tags):
            tags.setdefault(tag.casefold(), tag)
        return tuple(tags.values())


class SaveMemoryArguments(Arguments, frozen=True):
    memories: Annotated[tuple[NewMemory, ...], Meta(min_length=1, max_length=MAX_SAVED)]


class _MemoryTool(CardedTool):
    def __init__(self, scopes: MemoryScopes) -> None:
        self._scopes = scopes
        spec, uses = self.card.spec, "; ".join(f"{type_} ({USES[type_]})" for type_ in scopes.types)
        self.card = replace(self.card, spec=replace(spec, description=f"{spec.description} Types: {uses}."))


class SaveMemoryTool(_MemoryTool):
    """Saves all memories of a call, or none."""

    card = make_card(
        "save_memory",
        "Save memories for later: all agents of the team find them again, also after the history is cleared. "
        "Use it as soon as you have found something out that took effort, keep what searches and web pages "
        "brought in it, and before a task ends or the history is cleared save what is still needed and tidy "
        "up: merge what belongs together (merged_from), correct what changed (id). Not for results, which are "
        "artifacts or files, nor for what the workspace says anyway. "
        'Example: {"memories": [{"content": "The API is limited to 60 calls a minute.", "tags": ["api", '
        '"search"]}]}',
        build_schema(SaveMemoryArguments),
        group="memory",
    )

    async def run(self, context: StepContext) -> Outcome:
        """Save the memories and report their tags."""
        memories = read_arguments(SaveMemoryArguments, context.step).memories
        self._scopes.select([memory.memory_type for memory in memories])
        in_log = [memory for memory in memories if self._scopes.is_in_log(memory.memory_type)]
        wanted = _check_rules(context, *(self._make_intent(context, memory) for memory in in_log))
        if self._scopes.store is not None:
            save = partial(self._save_in_files, self._scopes.store, context)
            await asyncio.to_thread(save, [memory for memory in memories if memory not in in_log])
        return Outcome(result={"output": "\n".join(map(_describe_saved, memories))}, intents=wanted)

    def _make_intent(self, context: StepContext, memory: NewMemory) -> intents.SaveMemory:
        # A memory in a file stays there until the run is applied: the new one takes its place then.
        is_own = not memory.id or memory.memory_type == SHORT_TERM or memory.id in context.state.memories
        return intents.SaveMemory(
            content=memory.content.strip(),
            tags=memory.distinct_tags,
            memory_id=MemoryId(memory.id) if memory.id and is_own else None,
            merged_from=tuple(map(MemoryId, memory.merged_from if is_own else (memory.id, *memory.merged_from))),
            type=PROJECT if memory.memory_type == PROJECT else SHORT_TERM,
        )

    def _save_in_files(self, store: LongTermMemory, context: StepContext, memories: Sequence[NewMemory]) -> None:
        """Check all memories, then save them. Saving again after a crash changes nothing."""
        agent, step = context.agent.spec.name, context.step
        thread, ready, last = context.state.threads.get(step.thread_id), list[Memory](), ""
        for memory in memories:
            refused = check_memory(memory.content.strip(), memory.distinct_tags)
            (type_,) = self._scopes.select([memory.memory_type])
            named = dict.fromkeys(filter(None, (memory.id, *memory.merged_from)))
            known = {item.memory_id: item for item in store.get(type_, named, agent)}
            missing = [name for name in named if name not in known]
            if refused is not None or missing:
                why = refused or f"There is no memory {', '.join(missing)} in {type_}."
                raise ModelFault(f"{why} Nothing was saved.")
            old = known.get(MemoryId(memory.id))
            last = memory.id or memory_id(step.queued_at, last)
            read = chain(thread.origins if thread is not None else (), *(item.origins for item in known.values()))
            ready.append(
                Memory(
                    memory_id=MemoryId(last),
                    type=type_,
                    content=memory.content.strip(),
                    created_at=old.created_at if old is not None else step.queued_at,
                    tags=memory.distinct_tags,
                    updated_at=context.state.at if old is not None else None,
                    merged_from=tuple(map(MemoryId, memory.merged_from)),
                    by=agent,
                    origins=merge_labels((), read),
                )
            )
        for item in ready:
            store.save(item, agent)


def _describe_saved(memory: NewMemory) -> str:
    tags = ", ".join(memory.distinct_tags) or "none: it is found by its words only"
    what = f"Replaced {memory.id}" if memory.id else "Saved"
    from_others = f", merged from {len(memory.merged_from)}" if memory.merged_from else ""
    return f"{what} in {memory.memory_type}{from_others}; tags: {tags}."


Types: TypeAlias = Annotated[tuple[str, ...], Meta(description="Which types; all if left out.")]


_PLAIN_TAG: Final = re.compile(r"[\w-]{1,30}(?: [\w-]{1,30})?")
"""Tags of at most two words. Longer ones could be sentences, and do not belong into a prompt."""


class RetrieveMemoryArguments(Arguments, frozen=True):
    memory_types: Types = ()
    tags: Annotated[tuple[str, ...], Meta(description="Only memories with one of these tags.")] = ()
    words: Annotated[str, Meta(description="What they are about. The best match comes first.")] = ""
    limit: Annotated[int, Meta(ge=1, description=f"At most {MAX_SHOWN}; usually {DEFAULT_SHOWN}.")] = DEFAULT_SHOWN


class RetrieveMemoryTool(_MemoryTool):
    """Finds memories. Pure."""

    card = make_card(
        "retrieve_memory",
        "Find memories that you or others have saved. Use it when a task begins, before you search or "
        "ask again for something that may be known already, and when your history was cleared. Not for files "
        "or artifacts. Without tags and words you get the newest; when nothing fits you hear which tags there "
        'are. Example: {"memory_types": ["short_term"], "tags": ["api"], "words": "calls limit"}',
        build_schema(RetrieveMemoryArguments),
        group="memory",
        pure=True,
    )

    def __init__(self, scopes: MemoryScopes) -> None:
        super().__init__(scopes)
        counted = scopes.store.count_shared_tags() if scopes.store is not None else {}
        if plain := {tag: count for tag, count in counted.items() if _PLAIN_TAG.fullmatch(tag)}:
            tags = f"{self.card.spec.description} Tags so far: {render_tags(plain)}."
            self.card = replace(self.card, spec=replace(self.card.spec, description=tags))

    async def run(self, context: StepContext) -> Outcome:
        """Return the memories, or the available tags if none match."""
        asked = read_arguments(RetrieveMemoryArguments, context.step)
        types, tags, limit = (
            self._scopes.select(asked.memory_types),
            _drop_blank(asked.tags),
            min(asked.limit, MAX_SHOWN),
        )
        fitting = await self._scopes.find(context, types, tags=tags, words=asked.words, limit=limit + 1)
        if not fitting:
            known = await self._scopes.describe_tags(context, types)
            none = "" if known.startswith("Nothing") else "No memory fits. "
            return Outcome(result={"output": f"{none}{known}", "memories": []}, origins=_collect_log_origins(context))
        shown = fitting[:limit]
        told = [_render_memory(memory) for memory in shown]
        if len(fitting) > len(shown):
            told.append("More of them fit: ask for more with limit, or for fewer with tags or words.")
        result = {"output": "\n\n".join(told), "memories": [memory.memory_id for memory in shown]}
        return Outcome(result=result, origins=collect_origins(shown))


class ClearMemoryArguments(Arguments, frozen=True):
    memory_types: Types = ()
    tags: Annotated[tuple[str, ...], Meta(description="Those with one of these tags.")] = ()
    ids: Annotated[
        tuple[str, ...], Meta(description="Those with one of these ids, as retrieve_memory shows them.")
    ] = ()
    all: Annotated[bool, Meta(description="Really every memory of these types.")] = False


class ClearMemoryTool(_MemoryTool):
    """Clears memories. The team's log still contains its own."""

    card = make_card(
        "clear_memory",
        "Clear memories for all agents of the team, by type, tag or id. Use it to tidy up before a task ends: "
        "what is wrong, outdated or only of use while it ran. Not for what you only want to correct: "
        "save_memory with its id replaces it. Without tags and ids it needs all: true. "
        'Example: {"memory_types": ["short_term"], "tags": ["draft"]}',
        build_schema(ClearMemoryArguments),
        group="memory",
    )

    async def run(self, context: StepContext) -> Outcome:
        """Clear the memories and report how many."""
        asked = read_arguments(ClearMemoryArguments, context.step)
        types, tags, ids = self._scopes.select(asked.memory_types), _drop_blank(asked.tags), _drop_blank(asked.ids)
        if not tags and not ids and not asked.all:
            raise ModelFault(
                f"That would clear every memory of {', '.join(types)}. Name tags or ids, or say all: true. "
                "Nothing was cleared."
            )
        own = [item for item in self._scopes.find_in_log(context, types, tags=tags) if not ids or item.memory_id in ids]
        cleared = {memory.memory_id: memory.type for memory in own}
        wanted = _check_rules(context, intents.ClearMemory(memory_ids=tuple(cleared))) if cleared else ()
        stored = [type_ for type_ in types if not self._scopes.is_in_log(type_)]
        if (store := self._scopes.store) is not None:
            for type_ in stored:
                gone = await asyncio.to_thread(_clear_files, store, context, type_, tags, ids)
                cleared |= dict.fromkeys(gone, type_)
        if not cleared:
            none = f"No memory fits, so none is cleared. {await self._scopes.describe_tags(context, types)}"
            return Outcome(result={"output": none}, origins=_collect_log_origins(context))
        missing = [name for name in ids if name not in cleared]
        what = "1 memory" if len(cleared) == 1 else f"{len(cleared)} memories"
        rest = f" Not there: {', '.join(missing)}." if missing else ""
        places = ", ".join(dict.fromkeys(cleared.values()))
        return Outcome(result={"output": f"Cleared {what} of {places}.{rest}"}, intents=wanted)


def _clear_files(
    store: LongTermMemory, context: StepContext, type_: MemoryType, tags: Sequence[str], ids: Sequence[str]
) -> Sequence[MemoryId]:
    agent = context.agent.spec.name
    found = store.get(type_, ids, agent) if ids else store.find((type_,), agent, tags=tags, limit=MAX_CLEARED)
    folded = set(map(str.casefold, tags))
    fitting = (item for item in found if not tags or not folded.isdisjoint(map(str.casefold, item.tags)))
    return store.remove(type_, [item.memory_id for item in fitting], agent)


def _drop_blank(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, texts)))


def collect_origins(memories: Iterable[Memory]) -> Labels:
    """Collect the origins of these memories: what their authors had read, and where they come from."""
    return merge_labels((), chain.from_iterable(memory.origins for memory in memories))


def _collect_log_origins(context: StepContext) -> Labels:
    return collect_origins(context.state.memories.values())


def _render_memory(memory: Memory) -> str:
    """Render a whole memory with its id."""
    when = f"saved {_format_time(memory.created_at)}"
    if memory.updated_at is not None:
        when += f", changed {_format_time(memory.updated_at)}"
    by = f" by {memory.by}" if memory.by else ""
    from_others = f" · merged from {', '.join(memory.merged_from)}" if memory.merged_from else ""
    head = f"[{memory.memory_id}] {memory.type} · tags: {', '.join(memory.tags) or 'none'} · {when}{by}{from_others}"
    return f"{head}\n{memory.content}"


def _format_time(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def build_memory_tools(scopes: MemoryScopes) -> tuple[ToolExecutor, ...]:
    """Build save_memory, retrieve_memory and clear_memory."""
    return (SaveMemoryTool(scopes), RetrieveMemoryTool(scopes), ClearMemoryTool(scopes))
