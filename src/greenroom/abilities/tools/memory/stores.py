"""The stores of a team by type, and what is said of a type that none of them has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, get_args

from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench
from greenroom.core.ports.recall import Recall, Wanted
from greenroom.core.state.memory import Memory, MemoryType
from greenroom.core.state.origin import Labels, label, merged
from greenroom.core.state.step import Effect

STRICTNESS: Final[tuple[Effect, ...]] = get_args(Effect)
"""From harmless to careful."""

TYPES: Final[tuple[str, ...]] = get_args(MemoryType)


class Stores:
    """One store for each type that there is."""

    def __init__(self, stores: Iterable[Recall]) -> None:
        self._stores: dict[str, Recall] = {one.type: one for one in stores}

    @property
    def types(self) -> tuple[str, ...]:
        """The types that can be used."""
        return tuple(self._stores)

    @property
    def effect(self) -> Effect:
        """The strictest class of effect that a change can have here."""
        return max((one.effect for one in self._stores.values()), key=STRICTNESS.index)

    def of(self, name: str) -> Recall:
        """The store of this type."""
        found = self._stores.get(name)
        if found is None:
            known = "is not set up here" if name in TYPES else "is no type of memory"
            raise ModelFault(f"{name!r} {known}. There is: {', '.join(self._stores)}.")
        return found

    def chosen(self, names: Sequence[str]) -> list[Recall]:
        """The stores of these types, each once; all of them if none is named."""
        return [self.of(name) for name in dict.fromkeys(names or self._stores)]

    def schema(self, about: str) -> Data:
        """A list of types, as a model is told of it."""
        return {"type": "array", "items": {"type": "string"}, "description": f"{about} {', '.join(self._stores)}."}


async def found(stores: Iterable[Recall], bench: Bench, wanted: Wanted) -> list[Memory]:
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
