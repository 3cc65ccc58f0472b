"""save_memory, retrieve_memory and clear_memory: memories are kept, found and cleared by type, tag and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final, get_args

from msgspec import Meta

from greenroom.abilities.tools.arguments import Arguments, given, schema_of
from greenroom.abilities.tools.tool import CardedTool, make_card
from greenroom.core.base.errors import ModelFault, Rejected
from greenroom.core.base.ids import MemoryId
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.recall import Recall, Remembered, Wanted
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.rules import intents
from greenroom.core.rules.decide import decide
from greenroom.core.rules.intents import Consequence
from greenroom.core.state.knowledge import Memory, MemoryType
from greenroom.core.state.origin import Labels, label, merged
from greenroom.core.state.step import Effect

STRICTNESS: Final[tuple[Effect, ...]] = get_args(Effect)
"""From harmless to careful."""

TYPES: Final[tuple[str, ...]] = get_args(MemoryType)
USUAL_TYPE: Final = "short_term"
MOST_SAVED: Final = 20
USUAL_SHOWN: Final = 20
MOST_SHOWN: Final = 100
TAGS: Final = 40
"""Tags that are named."""


class Stores:
    """The stores of a team: one for each type that there is."""

    def __init__(self, stores: Iterable[Recall]) -> None:
        self._stores: dict[str, Recall] = {one.type: one for one in stores}
        self.types = ", ".join(self._stores)

    @property
    def effect(self) -> Effect:
        """The strictest class of effect that a change can have here."""
        return max((one.effect for one in self._stores.values()), key=STRICTNESS.index)

    def of(self, name: str) -> Recall:
        """The store of this type."""
        found = self._stores.get(name)
        if found is None:
            known = "is not set up here" if name in TYPES else "is no type of memory"
            raise ModelFault(f"{name!r} {known}. There is: {self.types}.")
        return found

    def chosen(self, names: Sequence[str]) -> list[Recall]:
        """The stores of these types, each once; all of them if none is named."""
        return [self.of(name) for name in dict.fromkeys(names or self._stores)]


class ShortTerm:
    """Short-term memory: a store in the team itself. It reads the world and returns intents, so it survives a crash, a
    fork has its own, and it goes with the team."""

    type: MemoryType = "short_term"
    effect: Effect = "pure"

    async def find(self, bench: Bench, wanted: Wanted) -> Sequence[Memory]:
        """Ids are times, so the newest have the highest."""
        memories = bench.world.memories
        return [memories[one] for one in sorted(memories, reverse=True) if wanted.fits(memories[one])]

    async def save(self, bench: Bench, memories: Sequence[Remembered]) -> tuple[Consequence, ...]:
        """As intents, if the rules would agree to all of them now."""
        return _tried(
            bench,
            *(
                intents.SaveMemory(
                    content=one.content, tags=one.tags, memory_id=one.memory_id, merged_from=one.merged_from
                )
                for one in memories
            ),
        )

    async def clear(self, bench: Bench, memories: Sequence[MemoryId]) -> tuple[Consequence, ...]:
        """As one intent."""
        return _tried(bench, intents.ClearMemory(memory_ids=tuple(memories)))


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
    memory_type: str = USUAL_TYPE
    id: Annotated[str, Meta(description="Of a memory whose content and tags this replaces.")] = ""
    merged_from: Annotated[tuple[str, ...], Meta(description="Ids of memories that this one takes the place of.")] = ()

    @property
    def remembered(self) -> Remembered:
        """As a store takes it. The same tag in other letters is the same."""
        tags: dict[str, str] = {}
        for one in self.tags:
            tags.setdefault(one.strip().casefold(), one.strip())
        return Remembered(
            content=self.content.strip(),
            tags=tuple(filter(None, tags.values())),
            memory_id=MemoryId(self.id) if self.id else None,
            merged_from=tuple(MemoryId(one) for one in self.merged_from),
        )


class SaveMemoryArguments(Arguments, frozen=True):
    """What to save."""

    memories: Annotated[tuple[NewMemory, ...], Meta(min_length=1, max_length=MOST_SAVED)]


class SaveMemory(CardedTool):
    """All memories of a call or none."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self.card = make_card(
            "save_memory",
            "Save memories for later: all agents of the team find them again, also after the history is cleared. "
            "Use it as soon as you have found something out that took effort, keep what searches and web pages "
            "brought in it, and before a task ends or the history is cleared save what is still needed and tidy "
            "up: merge what belongs together (merged_from), correct what changed (id). Not for results, which are "
            "artifacts or files, nor for what the workspace says anyway. "
            'Example: {"memories": [{"content": "The API is limited to 60 calls a minute.", "tags": ["api", '
            '"search"]}]}',
            schema_of(
                SaveMemoryArguments,
                memory_type=f"How far it reaches; {USUAL_TYPE} (as long as this team) if left out. "
                f"There is: {stores.types}.",
            ),
            group="memory",
            effect=stores.effect,
        )

    async def run(self, bench: Bench) -> Outcome:
        """Hand them to their stores, and say what they can be found by."""
        memories = given(SaveMemoryArguments, bench.step).memories
        # Every type is known before anything is saved.
        stores = {one.memory_type: self._stores.of(one.memory_type) for one in memories}
        consequences: list[Consequence] = []
        for name, store in stores.items():
            consequences += await store.save(bench, [one.remembered for one in memories if one.memory_type == name])
        return Outcome(result={"output": "\n".join(map(_saved, memories))}, intents=tuple(consequences))


def _saved(one: NewMemory) -> str:
    tags = ", ".join(one.remembered.tags) or "none: it is found by its words only"
    what = f"Replaced {one.id}" if one.id else "Saved"
    from_others = f", merged from {len(one.merged_from)}" if one.merged_from else ""
    return f"{what} in {one.memory_type}{from_others}; tags: {tags}."


class RetrieveMemoryArguments(Arguments, frozen=True):
    """Which memories to show."""

    memory_types: tuple[str, ...] = ()
    tags: Annotated[tuple[str, ...], Meta(description="Only memories with one of these tags.")] = ()
    words: Annotated[str, Meta(description="Only memories in which all of these words occur.")] = ""
    limit: Annotated[int, Meta(ge=1, description=f"At most {MOST_SHOWN}; usually {USUAL_SHOWN}.")] = USUAL_SHOWN


class RetrieveMemory(CardedTool):
    """Pure."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self.card = make_card(
            "retrieve_memory",
            "Find memories that you or others of the team have saved, newest first. Use it before you search or "
            "ask again for something that may be known already, and when your history was cleared. Not for files "
            "or artifacts. Without tags and words you get the newest; when nothing fits you hear which tags there "
            'are. Example: {"memory_types": ["short_term"], "tags": ["api"], "words": "calls limit"}',
            schema_of(RetrieveMemoryArguments, memory_types=f"Which types; all if left out. There is: {stores.types}."),
            group="memory",
            pure=True,
        )

    async def run(self, bench: Bench) -> Outcome:
        """The memories, or what there is instead."""
        asked = given(RetrieveMemoryArguments, bench.step)
        stores = self._stores.chosen(asked.memory_types)
        fitting = await _found(stores, bench, Wanted(tags=_filled(asked.tags), words=tuple(asked.words.split())))
        if not fitting:
            every = await _found(stores, bench, Wanted())
            none = "No memory fits. " if every else ""
            return Outcome(result={"output": f"{none}{_known(every)}", "memories": []}, origins=origins(every))
        shown = fitting[: min(asked.limit, MOST_SHOWN)]
        told = [_told(one) for one in shown]
        if len(fitting) > len(shown):
            rest = len(fitting) - len(shown)
            told.append(f"{rest} older ones fit too: ask for more with limit, or for fewer with tags or words.")
        result = {"output": "\n\n".join(told), "memories": [one.memory_id for one in shown]}
        return Outcome(result=result, origins=origins(shown))


class ClearMemoryArguments(Arguments, frozen=True):
    """Which memories to clear."""

    memory_types: tuple[str, ...] = ()
    tags: Annotated[tuple[str, ...], Meta(description="Those with one of these tags.")] = ()
    ids: Annotated[
        tuple[str, ...], Meta(description="Those with one of these ids, as retrieve_memory shows them.")
    ] = ()
    all: Annotated[bool, Meta(description="Really every memory of these types.")] = False


class ClearMemory(CardedTool):
    """What it cleared is still in the log of the team."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self.card = make_card(
            "clear_memory",
            "Clear memories for all agents of the team, by type, tag or id. Use it to tidy up before a task ends: "
            "what is wrong, outdated or only of use while it ran. Not for what you only want to correct: "
            "save_memory with its id replaces it. Without tags and ids it needs all: true. "
            'Example: {"memory_types": ["short_term"], "tags": ["draft"]}',
            schema_of(ClearMemoryArguments, memory_types=f"Which types; all if left out. There is: {stores.types}."),
            group="memory",
            effect=stores.effect,
        )

    async def run(self, bench: Bench) -> Outcome:
        """Clear them, and say how many that were."""
        asked = given(ClearMemoryArguments, bench.step)
        stores = self._stores.chosen(asked.memory_types)
        where = ", ".join(store.type for store in stores)
        wanted = Wanted(tags=_filled(asked.tags), ids=tuple(map(MemoryId, _filled(asked.ids))))
        if wanted == Wanted() and not asked.all:
            raise ModelFault(
                f"That would clear every memory of {where}. Name tags or ids, or say all: true. Nothing was cleared."
            )
        going = await _found(stores, bench, wanted)
        if not going:
            every = await _found(stores, bench, Wanted())
            none = f"No memory fits, so none is cleared. {_known(every)}"
            return Outcome(result={"output": none}, origins=origins(every))
        consequences: list[Consequence] = []
        for store in stores:
            mine = [one.memory_id for one in going if one.type == store.type]
            consequences += await store.clear(bench, mine) if mine else ()
        gone = [one.memory_id for one in going]
        missing = [one for one in wanted.ids if one not in gone]
        what = "1 memory" if len(gone) == 1 else f"{len(gone)} memories"
        rest = f" Not there: {', '.join(missing)}." if missing else ""
        return Outcome(result={"output": f"Cleared {what} of {where}.{rest}"}, intents=tuple(consequences))


def _filled(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, texts)))


async def _found(stores: Iterable[Recall], bench: Bench, wanted: Wanted) -> list[Memory]:
    """What is wanted of all of them, newest first."""
    every = [memory for store in stores for memory in await store.find(bench, wanted)]
    return sorted(every, key=lambda one: one.memory_id, reverse=True)


def origins(memories: Iterable[Memory]) -> Labels:
    """Where these come from: what those had read who wrote them. What another team may have written is anybody's."""
    labels: Labels = ()
    for one in memories:
        beyond = (label("memory", one.type),) if one.type != "short_term" else ()
        labels = merged(labels, (*beyond, *one.origins))
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


SHORT_TERM: Final[tuple[Recall, ...]] = (ShortTerm(),)


def memory_tools(stores: Iterable[Recall] = SHORT_TERM) -> tuple[ToolExecutor, ...]:
    """save_memory, retrieve_memory and clear_memory, over these stores."""
    known = Stores(stores)
    return (SaveMemory(known), RetrieveMemory(known), ClearMemory(known))
