"""save_memory, retrieve_memory and clear_memory: the short-term memory of a team, found by tag and by words.

It is in the team itself: it survives a crash, a fork has its own, and it goes with the team.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final, TypeAlias, get_args

from msgspec import Meta

from greenroom.abilities.tools.tool import Arguments, CardedTool, given, make_card, schema_of
from greenroom.core.base.errors import ModelFault, Rejected
from greenroom.core.base.ids import MemoryId
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.rules import intents
from greenroom.core.rules.decide import decide
from greenroom.core.rules.intents import Consequence
from greenroom.core.state.knowledge import Memory, MemoryType
from greenroom.core.state.origin import Labels, label, merged

TYPES: Final[tuple[str, ...]] = get_args(MemoryType)
SHORT_TERM: Final[MemoryType] = "short_term"
"""The one type of memory that there is here."""

MOST_SAVED: Final = 20
USUAL_SHOWN: Final = 20
MOST_SHOWN: Final = 100
TAGS: Final = 40
"""Tags that are named."""


def check_types(names: Iterable[str]) -> None:
    """Raise `ModelFault` for a type of memory that is not here."""
    for name in names:
        if name != SHORT_TERM:
            known = "is not set up here" if name in TYPES else "is no type of memory"
            raise ModelFault(f"{name!r} {known}. There is: {SHORT_TERM}.")


def find_memories(
    bench: Bench, *, tags: Iterable[str] = (), words: Iterable[str] = (), ids: Iterable[str] = ()
) -> list[Memory]:
    """Memories with one of the tags, all of the words, one of the ids; newest first. What is empty is not asked for."""
    wanted_tags, wanted_words, wanted_ids = set(map(str.casefold, tags)), list(map(str.casefold, words)), set(ids)
    found = []
    for name in sorted(bench.world.memories, reverse=True):  # ids are times
        memory = bench.world.memories[name]
        text = "\n".join((memory.content, *memory.tags)).casefold()
        if wanted_ids and name not in wanted_ids:
            continue
        if wanted_tags and wanted_tags.isdisjoint(map(str.casefold, memory.tags)):
            continue
        if all(word in text for word in wanted_words):
            found.append(memory)
    return found


def _tried(bench: Bench, *wanted: Consequence) -> tuple[Consequence, ...]:
    """These, if the rules agree to one after the other. They are asked again when it counts: others work meanwhile."""
    world = bench.world
    for intent in wanted:
        decided = decide(world, intent, by=bench.agent.agent_id, now=world.at)
        if isinstance(decided, Rejected):
            raise ModelFault(f"{decided} Nothing was changed.")
        world = decided.world
    return wanted


class NewMemory(Arguments, frozen=True):
    """A memory as a model gives it."""

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
        """The same tag in other letters is the same."""
        tags: dict[str, str] = {}
        for tag in _filled(self.tags):
            tags.setdefault(tag.casefold(), tag)
        return tuple(tags.values())

    @property
    def intent(self) -> intents.SaveMemory:
        """As the rules take it."""
        return intents.SaveMemory(
            content=self.content.strip(),
            tags=self.distinct_tags,
            memory_id=MemoryId(self.id) if self.id else None,
            merged_from=tuple(map(MemoryId, self.merged_from)),
        )


class SaveMemoryArguments(Arguments, frozen=True):
    """What to save."""

    memories: Annotated[tuple[NewMemory, ...], Meta(min_length=1, max_length=MOST_SAVED)]


class SaveMemory(CardedTool):
    """All memories of a call or none."""

    card = make_card(
        "save_memory",
        "Save memories for later: all agents of the team find them again, also after the history is cleared. "
        "Use it as soon as you have found something out that took effort, keep what searches and web pages "
        "brought in it, and before a task ends or the history is cleared save what is still needed and tidy "
        "up: merge what belongs together (merged_from), correct what changed (id). Not for results, which are "
        "artifacts or files, nor for what the workspace says anyway. "
        'Example: {"memories": [{"content": "The API is limited to 60 calls a minute.", "tags": ["api", '
        '"search"]}]}',
        schema_of(SaveMemoryArguments),
        group="memory",
    )

    async def run(self, bench: Bench) -> Outcome:
        """Save them, and say what they can be found by."""
        memories = given(SaveMemoryArguments, bench.step).memories
        check_types(memory.memory_type for memory in memories)
        wanted = _tried(bench, *(memory.intent for memory in memories))
        return Outcome(result={"output": "\n".join(map(_saved, memories))}, intents=wanted)


def _saved(one: NewMemory) -> str:
    tags = ", ".join(one.distinct_tags) or "none: it is found by its words only"
    what = f"Replaced {one.id}" if one.id else "Saved"
    from_others = f", merged from {len(one.merged_from)}" if one.merged_from else ""
    return f"{what} in {one.memory_type}{from_others}; tags: {tags}."


Types: TypeAlias = Annotated[
    tuple[str, ...], Meta(description=f"Which types; all if left out. There is: {SHORT_TERM}.")
]


class RetrieveMemoryArguments(Arguments, frozen=True):
    """Which memories to show."""

    memory_types: Types = ()
    tags: Annotated[tuple[str, ...], Meta(description="Only memories with one of these tags.")] = ()
    words: Annotated[str, Meta(description="Only memories in which all of these words occur.")] = ""
    limit: Annotated[int, Meta(ge=1, description=f"At most {MOST_SHOWN}; usually {USUAL_SHOWN}.")] = USUAL_SHOWN


class RetrieveMemory(CardedTool):
    """Pure."""

    card = make_card(
        "retrieve_memory",
        "Find memories that you or others of the team have saved, newest first. Use it before you search or "
        "ask again for something that may be known already, and when your history was cleared. Not for files "
        "or artifacts. Without tags and words you get the newest; when nothing fits you hear which tags there "
        'are. Example: {"memory_types": ["short_term"], "tags": ["api"], "words": "calls limit"}',
        schema_of(RetrieveMemoryArguments),
        group="memory",
        pure=True,
    )

    async def run(self, bench: Bench) -> Outcome:
        """The memories, or what there is instead."""
        asked = given(RetrieveMemoryArguments, bench.step)
        check_types(asked.memory_types)
        fitting = find_memories(bench, tags=_filled(asked.tags), words=asked.words.split())
        if not fitting:
            every = find_memories(bench)
            none = "No memory fits. " if every else ""
            return Outcome(result={"output": f"{none}{_known(every)}", "memories": []}, origins=origins(every))
        shown = fitting[: min(asked.limit, MOST_SHOWN)]
        told = [_told(memory) for memory in shown]
        if len(fitting) > len(shown):
            rest = len(fitting) - len(shown)
            told.append(f"{rest} older ones fit too: ask for more with limit, or for fewer with tags or words.")
        result = {"output": "\n\n".join(told), "memories": [memory.memory_id for memory in shown]}
        return Outcome(result=result, origins=origins(shown))


class ClearMemoryArguments(Arguments, frozen=True):
    """Which memories to clear."""

    memory_types: Types = ()
    tags: Annotated[tuple[str, ...], Meta(description="Those with one of these tags.")] = ()
    ids: Annotated[
        tuple[str, ...], Meta(description="Those with one of these ids, as retrieve_memory shows them.")
    ] = ()
    all: Annotated[bool, Meta(description="Really every memory of these types.")] = False


class ClearMemory(CardedTool):
    """What it cleared is still in the log of the team."""

    card = make_card(
        "clear_memory",
        "Clear memories for all agents of the team, by type, tag or id. Use it to tidy up before a task ends: "
        "what is wrong, outdated or only of use while it ran. Not for what you only want to correct: "
        "save_memory with its id replaces it. Without tags and ids it needs all: true. "
        'Example: {"memory_types": ["short_term"], "tags": ["draft"]}',
        schema_of(ClearMemoryArguments),
        group="memory",
    )

    async def run(self, bench: Bench) -> Outcome:
        """Clear them, and say how many that were."""
        asked = given(ClearMemoryArguments, bench.step)
        check_types(asked.memory_types)
        tags, ids = _filled(asked.tags), _filled(asked.ids)
        if not tags and not ids and not asked.all:
            raise ModelFault(
                f"That would clear every memory of {SHORT_TERM}. Name tags or ids, or say all: true. "
                "Nothing was cleared."
            )
        going = tuple(memory.memory_id for memory in find_memories(bench, tags=tags, ids=ids))
        if not going:
            every = find_memories(bench)
            none = f"No memory fits, so none is cleared. {_known(every)}"
            return Outcome(result={"output": none}, origins=origins(every))
        missing = [name for name in ids if name not in going]
        what = "1 memory" if len(going) == 1 else f"{len(going)} memories"
        rest = f" Not there: {', '.join(missing)}." if missing else ""
        cleared = _tried(bench, intents.ClearMemory(memory_ids=going))
        return Outcome(result={"output": f"Cleared {what} of {SHORT_TERM}.{rest}"}, intents=cleared)


def _filled(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, texts)))


def origins(memories: Iterable[Memory]) -> Labels:
    """Where these come from: what those had read who wrote them. What another team may have written is anybody's."""
    labels: Labels = ()
    for memory in memories:
        beyond = (label("memory", memory.type),) if memory.type != SHORT_TERM else ()
        labels = merged(labels, (*beyond, *memory.origins))
    return labels


def _told(memory: Memory) -> str:
    """One memory, whole, with its id so that it can be named."""
    when = f"saved {_time(memory.created_at)}"
    if memory.updated_at is not None:
        when += f", changed {_time(memory.updated_at)}"
    by = f" by {memory.by}" if memory.by else ""
    from_others = f" · merged from {', '.join(memory.merged_from)}" if memory.merged_from else ""
    head = f"[{memory.memory_id}] {memory.type} · tags: {', '.join(memory.tags) or 'none'} · {when}{by}{from_others}"
    return f"{head}\n{memory.content}"


def _known(memories: Sequence[Memory]) -> str:
    """What could be asked for instead: the tags that there are, most used first."""
    if not memories:
        return "Nothing is remembered yet."
    many = "There is 1 memory" if len(memories) == 1 else f"There are {len(memories)} memories"
    counted = Counter(tag for memory in memories for tag in memory.tags)
    if not counted:
        return f"{many}, none with a tag."
    named = ", ".join(f"{tag} ({count})" for tag, count in counted.most_common(TAGS))
    more = f" and {len(counted) - TAGS} more" if len(counted) > TAGS else ""
    return f"{many}, with the tags: {named}{more}."


def _time(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def memory_tools() -> tuple[ToolExecutor, ...]:
    """save_memory, retrieve_memory and clear_memory."""
    return (SaveMemory(), RetrieveMemory(), ClearMemory())
