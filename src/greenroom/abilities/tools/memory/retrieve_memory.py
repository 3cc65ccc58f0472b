"""`retrieve_memory`: what was saved, by type, by tag and by words."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from greenroom.abilities.tools.memory.stores import Stores, found, origins
from greenroom.abilities.tools.memory.telling import known, told
from greenroom.abilities.tools.memory.tool import MemoryTool
from greenroom.abilities.tools.output.given import given
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.recall import Wanted
from greenroom.core.ports.tool import ToolCard

USUAL: Final = 20
MOST: Final = 100
DESCRIPTION: Final = (
    "Find memories that you or others of the team have saved, newest first. Use it before you search or ask again for "
    "something that may be known already, and when your history was cleared. Not for files or artifacts. Without tags "
    "and words you get the newest; when nothing fits you hear which tags there are. "
    'Example: {"memory_types": ["short_term"], "tags": ["api"], "words": "calls limit"}'
)


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call's arguments."""

    memory_types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    words: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1)] = USUAL

    @property
    def wanted(self) -> Wanted:
        """As a store is asked."""
        return Wanted(tags=tuple(one.strip() for one in self.tags if one.strip()), words=tuple(self.words.split()))


class RetrieveMemory(MemoryTool):
    """Pure."""

    def __init__(self, stores: Stores) -> None:
        super().__init__(stores)
        parameters = {
            "type": "object",
            "properties": {
                "memory_types": stores.schema("Which types; all if left out. There is:"),
                "tags": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Only memories with one of these tags.",
                },
                "words": {"type": "string", "description": "Only memories in which all of these words occur."},
                "limit": {"type": "integer", "minimum": 1, "description": f"At most {MOST}; usually {USUAL}."},
            },
            "additionalProperties": False,
        }
        spec = ToolSpec(name="retrieve_memory", description=DESCRIPTION, parameters=parameters, pure=True)
        self.card = ToolCard(spec=spec, group="memory", effect="pure")

    async def run(self, bench: Bench) -> Outcome:
        """The memories, or what there is instead."""
        asked = given(Asked, bench.step)
        stores = self._stores.chosen(asked.memory_types)
        fitting = await found(stores, bench, asked.wanted)
        if not fitting:
            every = await found(stores, bench, Wanted())
            none = "No memory fits. " if every else ""
            return Outcome(result={"output": f"{none}{known(every)}", "memories": []}, origins=origins(every))
        shown = fitting[: min(asked.limit, MOST)]
        rest = len(fitting) - len(shown)
        more = (
            f"\n\n{rest} older ones fit too: ask for more with limit, or for fewer with tags or words." if rest else ""
        )
        text = "\n\n".join(map(told, shown))
        result = {"output": f"{text}{more}", "memories": [one.memory_id for one in shown]}
        return Outcome(result=result, origins=origins(shown))
