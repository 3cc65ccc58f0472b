"""save_memory, retrieve_memory and clear_memory: the short-term memory of a team, found by tag and by words.

The memory is part of the team's log: it survives a crash, is copied by a fork, and is deleted with the team.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final, TypeAlias, get_args

from msgspec import Meta

from greenroom.abilities.tools.tool import Arguments, CardedTool, build_schema, make_card, read_arguments
from greenroom.core.base.errors import ModelFault, Rejection
from greenroom.core.base.ids import MemoryId
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.rules import intents
from greenroom.core.rules.decide import decide
from greenroom.core.rules.intents import Consequence
from greenroom.core.state.knowledge import Memory, MemoryType
from greenroom.core.state.origin import Labels, make_label, merge_labels

MEMORY_TYPES: Final[tuple[str, ...]] = get_args(MemoryType)
SHORT_TERM: Final[MemoryType] = "short_term"
"""The only type of memory that is available here."""

MAX_SAVED: Final = 20
DEFAULT_SHOWN: Final = 20
MAX_SHOWN: Final = 100
MAX_TAGS_SHOWN: Final = 40
"""Maximum number of tags that are listed."""


def check_types(names: Iterable[str]) -> None:
    """Raise `ModelFault` for a type of memory that is not available."""
    for name in names:
        if name != SHORT_TERM:
            known = "is not set up here" if name in MEMORY_TYPES else "is not a type of memory"
            raise ModelFault(f"{name!r} {known}. There is: {SHORT_TERM}.")


def find_memories(
    context: StepContext, *, tags: Iterable[str] = (), words: Iterable[str] = (), ids: Iterable[str] = ()
) -> list[Memory]:
    """Return memories with any of the tags, all of the words and any of the ids, newest first. Empty filters are
    ignored."""
    wanted_tags, wanted_words, wanted_ids = set(map(str.casefold, tags)), list(map(str.casefold, words)), set(ids)
    found = []
    for name in sorted(context.state.memories, reverse=True):  # ids sort by time
        memory = context.state.memories[name]
        text = "\n".join((memory.content, *memory.tags)).casefold()
        if wanted_ids and name not in wanted_ids:
            continue
        if wanted_tags and wanted_tags.isdisjoint(map(str.casefold, memory.tags)):
            continue
        if all(word in text for word in wanted_words):
            found.append(memory)
    return found


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
    memory_type: Annotated[
        str,
        Meta(
            description=f"How far it reaches; {SHORT_TERM} (as long as this team) if left out. There is: {SHORT_TERM}."
        ),
    ] = SHORT_TERM
    id: Annotated[str, Meta(description="Of a memory whose content and tags this replaces.")] = ""
    merged_from: Annotated[tuple[str, ...], Meta(description="Ids of memories that this one takes the place of.")] = ()

    @property
    def distinct_tags(self) -> tuple[str, ...]:
        """Return the tags without duplicates, ignoring case."""
        tags: dict[str, str] = {}
        for tag in _drop_blank(self.tags):
            tags.setdefault(tag.casefold(), tag)
        return tuple(tags.values())

    @property
    def intent(self) -> intents.SaveMemory:
        return intents.SaveMemory(
            content=self.content.strip(),
            tags=self.distinct_tags,
            memory_id=MemoryId(self.id) if self.id else None,
            merged_from=tuple(map(MemoryId, self.merged_from)),
        )


class SaveMemoryArguments(Arguments, frozen=True):
    memories: Annotated[tuple[NewMemory, ...], Meta(min_length=1, max_length=MAX_SAVED)]


class SaveMemoryTool(CardedTool):
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
        check_types(memory.memory_type for memory in memories)
        wanted = _check_rules(context, *(memory.intent for memory in memories))
        return Outcome(result={"output": "\n".join(map(_describe_saved, memories))}, intents=wanted)


def _describe_saved(memory: NewMemory) -> str:
    tags = ", ".join(memory.distinct_tags) or "none: it is found by its words only"
    what = f"Replaced {memory.id}" if memory.id else "Saved"
    from_others = f", merged from {len(memory.merged_from)}" if memory.merged_from else ""
    return f"{what} in {memory.memory_type}{from_others}; tags: {tags}."


Types: TypeAlias = Annotated[
    tuple[str, ...], Meta(description=f"Which types; all if left out. There is: {SHORT_TERM}.")
]


class RetrieveMemoryArguments(Arguments, frozen=True):
    memory_types: Types = ()
    tags: Annotated[tuple[str, ...], Meta(description="Only memories with one of these tags.")] = ()
    words: Annotated[str, Meta(description="Only memories in which all of these words occur.")] = ""
    limit: Annotated[int, Meta(ge=1, description=f"At most {MAX_SHOWN}; usually {DEFAULT_SHOWN}.")] = DEFAULT_SHOWN


class RetrieveMemoryTool(CardedTool):
    """Finds memories. Pure."""

    card = make_card(
        "retrieve_memory",
        "Find memories that you or others of the team have saved, newest first. Use it before you search or "
        "ask again for something that may be known already, and when your history was cleared. Not for files "
        "or artifacts. Without tags and words you get the newest; when nothing fits you hear which tags there "
        'are. Example: {"memory_types": ["short_term"], "tags": ["api"], "words": "calls limit"}',
        build_schema(RetrieveMemoryArguments),
        group="memory",
        pure=True,
    )

    async def run(self, context: StepContext) -> Outcome:
        """Return the memories, or the available tags if none match."""
        asked = read_arguments(RetrieveMemoryArguments, context.step)
        check_types(asked.memory_types)
        fitting = find_memories(context, tags=_drop_blank(asked.tags), words=asked.words.split())
        if not fitting:
            all_memories = find_memories(context)
            none = "No memory fits. " if all_memories else ""
            return Outcome(
                result={"output": f"{none}{_describe_tags(all_memories)}", "memories": []},
                origins=collect_origins(all_memories),
            )
        shown = fitting[: min(asked.limit, MAX_SHOWN)]
        told = [_render_memory(memory) for memory in shown]
        if len(fitting) > len(shown):
            rest = len(fitting) - len(shown)
            told.append(f"{rest} older ones fit too: ask for more with limit, or for fewer with tags or words.")
        result = {"output": "\n\n".join(told), "memories": [memory.memory_id for memory in shown]}
        return Outcome(result=result, origins=collect_origins(shown))


class ClearMemoryArguments(Arguments, frozen=True):
    memory_types: Types = ()
    tags: Annotated[tuple[str, ...], Meta(description="Those with one of these tags.")] = ()
    ids: Annotated[
        tuple[str, ...], Meta(description="Those with one of these ids, as retrieve_memory shows them.")
    ] = ()
    all: Annotated[bool, Meta(description="Really every memory of these types.")] = False


class ClearMemoryTool(CardedTool):
    """Clears memories. The team's log still contains them."""

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
        check_types(asked.memory_types)
        tags, ids = _drop_blank(asked.tags), _drop_blank(asked.ids)
        if not tags and not ids and not asked.all:
            raise ModelFault(
                f"That would clear every memory of {SHORT_TERM}. Name tags or ids, or say all: true. "
                "Nothing was cleared."
            )
        doomed_ids = tuple(memory.memory_id for memory in find_memories(context, tags=tags, ids=ids))
        if not doomed_ids:
            all_memories = find_memories(context)
            none = f"No memory fits, so none is cleared. {_describe_tags(all_memories)}"
            return Outcome(result={"output": none}, origins=collect_origins(all_memories))
        missing = [name for name in ids if name not in doomed_ids]
        what = "1 memory" if len(doomed_ids) == 1 else f"{len(doomed_ids)} memories"
        rest = f" Not there: {', '.join(missing)}." if missing else ""
        cleared = _check_rules(context, intents.ClearMemory(memory_ids=doomed_ids))
        return Outcome(result={"output": f"Cleared {what} of {SHORT_TERM}.{rest}"}, intents=cleared)


def _drop_blank(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, texts)))


def collect_origins(memories: Iterable[Memory]) -> Labels:
    """Collect the origins of these memories: what their authors had read. Memories of other teams get a label."""
    labels: Labels = ()
    for memory in memories:
        beyond = (make_label("memory", memory.type),) if memory.type != SHORT_TERM else ()
        labels = merge_labels(labels, (*beyond, *memory.origins))
    return labels


def _render_memory(memory: Memory) -> str:
    """Render a whole memory with its id."""
    when = f"saved {_format_time(memory.created_at)}"
    if memory.updated_at is not None:
        when += f", changed {_format_time(memory.updated_at)}"
    by = f" by {memory.by}" if memory.by else ""
    from_others = f" · merged from {', '.join(memory.merged_from)}" if memory.merged_from else ""
    head = f"[{memory.memory_id}] {memory.type} · tags: {', '.join(memory.tags) or 'none'} · {when}{by}{from_others}"
    return f"{head}\n{memory.content}"


def _describe_tags(memories: Sequence[Memory]) -> str:
    """Describe the existing tags, most used first."""
    if not memories:
        return "Nothing is remembered yet."
    many = "There is 1 memory" if len(memories) == 1 else f"There are {len(memories)} memories"
    counted = Counter(tag for memory in memories for tag in memory.tags)
    if not counted:
        return f"{many}, none with a tag."
    named = ", ".join(f"{tag} ({count})" for tag, count in counted.most_common(MAX_TAGS_SHOWN))
    more = f" and {len(counted) - MAX_TAGS_SHOWN} more" if len(counted) > MAX_TAGS_SHOWN else ""
    return f"{many}, with the tags: {named}{more}."


def _format_time(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def build_memory_tools() -> tuple[ToolExecutor, ...]:
    """Build save_memory, retrieve_memory and clear_memory."""
    return (SaveMemoryTool(), RetrieveMemoryTool(), ClearMemoryTool())
