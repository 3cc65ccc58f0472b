"""The tools for memories, all that belong together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from greenroom.abilities.tools.memory.retrieve_memory import RetrieveMemory
from greenroom.abilities.tools.memory.short_term import ShortTerm
from greenroom.abilities.tools.memory.stores import Stores, found, origins
from greenroom.abilities.tools.memory.telling import known
from greenroom.abilities.tools.memory.tool import MemoryTool
from greenroom.abilities.tools.output.given import given
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import MemoryId
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.recall import Recall, Remembered, Wanted
from greenroom.core.ports.tool import ToolCard, ToolExecutor
from greenroom.core.rules.intents import Consequence
from greenroom.core.state.memory import Memory

MOST: Final = 20
"""Memories in one call."""

USUAL: Final = "short_term"
SAVE_MEMORY_DESCRIPTION: Final = (
    "Save memories for later: all agents of the team find them again, also after the history is cleared. Use it as "
    "soon as you have found something out that took effort, keep what searches and web pages brought in it, and before "
    "a task ends or the history is cleared save what is still needed and tidy up: merge what belongs together "
    "(merged_from), correct what changed (id). Not for results, which are artifacts or files, nor for what the "
    "workspace says anyway. "
    'Example: {"memories": [{"content": "The API is limited to 60 calls a minute.", "tags": ["api", "search"]}]}'
)


class One(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A memory as a model gives it."""

    content: str
    tags: tuple[str, ...] = ()
    memory_type: str = USUAL
    id: str = ""
    merged_from: tuple[str, ...] = ()

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


class SaveMemoryAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call's arguments."""

    memories: Annotated[tuple[One, ...], msgspec.Meta(min_length=1, max_length=MOST)]


def _schema(stores: Stores) -> Data:
    names = {"type": "array", "items": {"type": "string"}}
    one: Data = {
        "type": "object",
        "properties": {
            "content": {"type": "string", "description": "What to remember, so that it is understood alone."},
            "tags": {**names, "description": "A few words by which it is found again."},
            "memory_type": {
                "type": "string",
                "description": f"How far it reaches; {USUAL} (as long as this team) if left out. "
                f"There is: {', '.join(stores.types)}.",
            },
            "id": {"type": "string", "description": "Of a memory whose content and tags this replaces."},
            "merged_from": {**names, "description": "Ids of memories that this one takes the place of."},
        },
        "required": ["content"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"memories": {"type": "array", "minItems": 1, "maxItems": MOST, "items": one}},
        "required": ["memories"],
        "additionalProperties": False,
    }


class SaveMemory(MemoryTool):
    """All memories of a call or none."""

    def __init__(self, stores: Stores) -> None:
        super().__init__(stores)
        spec = ToolSpec(name="save_memory", description=SAVE_MEMORY_DESCRIPTION, parameters=_schema(stores))
        self.card = ToolCard(spec=spec, group="memory", effect=stores.effect)

    async def run(self, bench: Bench) -> Outcome:
        """Hand them to their stores, and say what they can be found by."""
        asked = given(SaveMemoryAsked, bench.step)
        intents: list[Consequence] = []
        for store, memories in self._by_store(asked):
            intents += await store.save(bench, memories)
        told = "\n".join(_save_memory_told(one) for one in asked.memories)
        return Outcome(result={"output": told}, intents=tuple(intents))

    def _by_store(self, asked: SaveMemoryAsked) -> list[tuple[Recall, list[Remembered]]]:
        """Which store gets what; every type is known before anything is saved."""
        stores = {one.memory_type: self._stores.of(one.memory_type) for one in asked.memories}
        return [
            (store, [one.remembered for one in asked.memories if one.memory_type == name])
            for name, store in stores.items()
        ]


def _save_memory_told(one: One) -> str:
    tags = ", ".join(one.remembered.tags) or "none: it is found by its words only"
    what = f"Replaced {one.id}" if one.id else "Saved"
    merged = f", merged from {len(one.merged_from)}" if one.merged_from else ""
    return f"{what} in {one.memory_type}{merged}; tags: {tags}."


DESCRIPTION: Final = (
    "Clear memories for all agents of the team, by type, tag or id. Use it to tidy up before a task ends: what is "
    "wrong, outdated or only of use while it ran. Not for what you only want to correct: save_memory with its id "
    "replaces it. Without tags and ids it needs all: true. "
    'Example: {"memory_types": ["short_term"], "tags": ["draft"]}'
)


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call's arguments."""

    memory_types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    all: bool = False

    @property
    def wanted(self) -> Wanted:
        """As a store is asked."""
        tags = tuple(one.strip() for one in self.tags if one.strip())
        return Wanted(tags=tags, ids=tuple(MemoryId(one.strip()) for one in self.ids if one.strip()))


class ClearMemory(MemoryTool):
    """What it cleared is still in the log of the team."""

    def __init__(self, stores: Stores) -> None:
        super().__init__(stores)
        names = {"type": "array", "items": {"type": "string"}}
        parameters = {
            "type": "object",
            "properties": {
                "memory_types": stores.schema("Which types; all if left out. There is:"),
                "tags": {**names, "description": "Those with one of these tags."},
                "ids": {**names, "description": "Those with one of these ids, as retrieve_memory shows them."},
                "all": {"type": "boolean", "description": "Really every memory of these types."},
            },
            "additionalProperties": False,
        }
        spec = ToolSpec(name="clear_memory", description=DESCRIPTION, parameters=parameters)
        self.card = ToolCard(spec=spec, group="memory", effect=stores.effect)

    async def run(self, bench: Bench) -> Outcome:
        """Clear them, and say how many that were."""
        asked = given(Asked, bench.step)
        stores = self._stores.chosen(asked.memory_types)
        if asked.wanted == Wanted() and not asked.all:
            which = ", ".join(store.type for store in stores)
            why = f"That would clear every memory of {which}. Name tags or ids, or say all: true. Nothing was cleared."
            raise ModelFault(why)
        going = await found(stores, bench, asked.wanted)
        if not going:
            every = await found(stores, bench, Wanted())
            none = f"No memory fits, so none is cleared. {known(every)}"
            return Outcome(result={"output": none}, origins=origins(every))
        intents: list[Consequence] = []
        for store in stores:
            mine = [one.memory_id for one in going if one.type == store.type]
            intents += await store.clear(bench, mine) if mine else ()
        return Outcome(result={"output": _told(going, asked, stores)}, intents=tuple(intents))


def _told(going: list[Memory], asked: Asked, stores: list[Recall]) -> str:
    gone = [one.memory_id for one in going]
    missing = [one for one in asked.wanted.ids if one not in gone]
    where = ", ".join(store.type for store in stores)
    what = "1 memory" if len(gone) == 1 else f"{len(gone)} memories"
    rest = f" Not there: {', '.join(missing)}." if missing else ""
    return f"Cleared {what} of {where}.{rest}"


SHORT_TERM: Final[tuple[Recall, ...]] = (ShortTerm(),)


def memory_tools(stores: Iterable[Recall] = SHORT_TERM) -> tuple[ToolExecutor, ...]:
    """save_memory, retrieve_memory and clear_memory, over these stores."""
    known = Stores(stores)
    return (SaveMemory(known), RetrieveMemory(known), ClearMemory(known))
