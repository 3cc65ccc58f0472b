"""`clear_memory`: memories that nobody needs any more."""

from __future__ import annotations

from typing import Final

import msgspec

from greenroom.abilities.tools.memory.stores import Stores, found
from greenroom.abilities.tools.memory.telling import known
from greenroom.abilities.tools.memory.tool import MemoryTool
from greenroom.abilities.tools.output.given import given
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import MemoryId
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.recall import Recall, Wanted
from greenroom.core.ports.tool import ToolCard
from greenroom.core.rules.intents import Consequence
from greenroom.core.state.memory import Memory

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
            return Outcome(result={"output": f"No memory fits, so none is cleared. {known(every)}"})
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
