"""`save_memory`: something to be found again later, by this agent or by another one of the team."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from greenroom.abilities.tools.memory.stores import Stores
from greenroom.abilities.tools.memory.tool import MemoryTool
from greenroom.abilities.tools.output.given import given
from greenroom.core.base.ids import MemoryId
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.recall import Recall, Remembered
from greenroom.core.ports.tool import ToolCard
from greenroom.core.rules.intents import Consequence

MOST: Final = 20
"""Memories in one call."""

USUAL: Final = "short_term"
DESCRIPTION: Final = (
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


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
        spec = ToolSpec(name="save_memory", description=DESCRIPTION, parameters=_schema(stores))
        self.card = ToolCard(spec=spec, group="memory", effect=stores.effect)

    async def run(self, bench: Bench) -> Outcome:
        """Hand them to their stores, and say what they can be found by."""
        asked = given(Asked, bench.step)
        intents: list[Consequence] = []
        for store, memories in self._by_store(asked):
            intents += await store.save(bench, memories)
        told = "\n".join(_told(one) for one in asked.memories)
        return Outcome(result={"output": told}, intents=tuple(intents))

    def _by_store(self, asked: Asked) -> list[tuple[Recall, list[Remembered]]]:
        """Which store gets what; every type is known before anything is saved."""
        stores = {one.memory_type: self._stores.of(one.memory_type) for one in asked.memories}
        return [
            (store, [one.remembered for one in asked.memories if one.memory_type == name])
            for name, store in stores.items()
        ]


def _told(one: One) -> str:
    tags = ", ".join(one.remembered.tags) or "none: it is found by its words only"
    what = f"Replaced {one.id}" if one.id else "Saved"
    merged = f", merged from {len(one.merged_from)}" if one.merged_from else ""
    return f"{what} in {one.memory_type}{merged}; tags: {tags}."
