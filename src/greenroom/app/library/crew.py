"""Who takes part in a run of an agent: itself, those it may call, those they may call; and what they work with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from greenroom.abilities.skills.talking import talking
from greenroom.app.functions.shapes import Misfit
from greenroom.app.functions.tools import Tool
from greenroom.app.kit import Kit
from greenroom.app.library.around import ToldExecutor, ToldModel
from greenroom.app.library.blueprint import Blueprint, own
from greenroom.app.library.events import EventBus
from greenroom.app.reading import TextReader
from greenroom.app.talks.kits import Hands
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Abilities
from greenroom.core.ports.model import Model, Models

HandsOf: TypeAlias = Callable[[Sequence[Tool[..., Any]], Models], Hands]
"""Makes the tools of a run from those that the program brings, and the models that some of them ask."""


def everybody(agent: Blueprint[Any]) -> dict[str, Blueprint[Any]]:
    """All agents of a run by name; two that are called alike are refused."""
    found: dict[str, Blueprint[Any]] = {}
    todo = [agent]
    while todo:
        one = todo.pop()
        known = found.setdefault(one.name, one)
        if known is not one:
            raise WorldFault(f"Two agents are called {one.name!r}. Give one of them another name.")
        todo += [other for other in one.agents if found.get(other.name) is not other]
    return found


class Voices:
    """The models of a run: those that agents brought themselves, by agent, and all others by name."""

    def __init__(self, agents: dict[str, Blueprint[Any]], models: Models, events: EventBus) -> None:
        self._own = {own(name): one.model for name, one in agents.items() if not isinstance(one.model, str)}
        self._models = models
        self._events = events
        self._addons = {name for name, one in agents.items() if one.spec.turn.protocols}

    def named(self, name: str) -> Model:
        """The model of this name."""
        model = self._own.get(name) or self._models.named(name)
        return ToldModel(model, self._events, self._addons.__contains__)


def kit_of(
    agents: dict[str, Blueprint[Any]],
    models: Models,
    events: EventBus,
    hands: HandsOf,
    *,
    solo: bool,
    context: object = None,
    filter_above: int = 0,
) -> Kit:
    """What a run (`solo`: its answer ends it) or a conversation works with; `context` is what its tools are given."""
    tools: dict[str, Tool[..., Any]] = {}
    for one in agents.values():
        for each in one.tools:
            if tools.setdefault(each.name, each).function is not each.function:
                raise WorldFault(f"Two tools are called {each.name!r}. Give one of them another name.")
    voices = Voices(agents, models, events)
    mine = hands([one.given(context) for one in tools.values()], voices)
    skills = talking(voices, mine.specs, solo=solo, reader=Checked(agents), filter_above=filter_above)
    every = (*skills, *mine.executors)
    return Kit(abilities=Abilities(ToldExecutor(one, events) for one in every), closing=mine.close)


class Checked(TextReader):
    """Reads what agents say; what they answer is checked by the type that was asked for, not only by its schema."""

    def __init__(self, agents: dict[str, Blueprint[Any]]) -> None:
        super().__init__()
        self._shapes = [one.shape for one in agents.values() if one.shape is not None]

    def misfit(self, schema: Data, value: object) -> str:
        """Where it does not fit."""
        shape = next((one for one in self._shapes if one.schema == schema), None)
        if shape is None:
            return super().misfit(schema, value)
        try:
            shape.read(value)
        except Misfit as misfit:
            return str(misfit)
        return ""
