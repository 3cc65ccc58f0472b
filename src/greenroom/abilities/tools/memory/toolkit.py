"""The tools for memories, all that belong together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from greenroom.abilities.tools.memory.clear_memory import ClearMemory
from greenroom.abilities.tools.memory.retrieve_memory import RetrieveMemory
from greenroom.abilities.tools.memory.save_memory import SaveMemory
from greenroom.abilities.tools.memory.short_term import ShortTerm
from greenroom.abilities.tools.memory.stores import Stores
from greenroom.core.ports.recall import Recall
from greenroom.core.ports.tool import ToolExecutor

SHORT_TERM: Final[tuple[Recall, ...]] = (ShortTerm(),)


def memory_tools(stores: Iterable[Recall] = SHORT_TERM) -> tuple[ToolExecutor, ...]:
    """save_memory, retrieve_memory and clear_memory, over these stores."""
    known = Stores(stores)
    return (SaveMemory(known), RetrieveMemory(known), ClearMemory(known))
