"""Telling a run as it goes by: each event in words, the world it leads to, and what every agent has spent so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from greenroom.app.messages import CHINESE
from greenroom.app.runtime import Told
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.ids import AgentId, agent_of
from greenroom.core.base.records import record
from greenroom.core.state.events import Event
from greenroom.core.state.fold import fold
from greenroom.core.state.message import MessageSent
from greenroom.core.state.step import StepEnded, StepInterrupted, StepStarted
from greenroom.core.state.world import NOWHERE, World
from greenroom.interfaces.cli.display.words import Said, say
from greenroom.interfaces.cli.display.words_zh import say_zh


def _in_words(language: str) -> Callable[[World, Event], Said]:
    return say_zh if language.partition("-")[0] == CHINESE else say


@record
class Line:
    """What one event says, with its place and time."""

    version: int
    at: int
    type: str
    said: Said


@dataclass(slots=True)
class Teller:
    """Folds what it is told. `spent` counts what went by here, which is everything when it began at version 0.
    `at_most` says that what an interrupted call had reserved is part of it: nobody knows what it really cost.
    `language` is that of the lines."""

    world: World = NOWHERE
    version: int = 0
    spent: dict[AgentId, Amounts] = field(default_factory=dict)
    at_most: bool = False
    steps: int = 0
    messages: int = 0
    failures: list[str] = field(default_factory=list)
    began_at: int = 0
    at: int = 0
    language: str = "en"

    def tell(self, told: Told) -> Line:
        """Take one more event."""
        event = told.event
        line = Line(
            version=told.version,
            at=event.at,
            type=type(event).__name__,
            said=_in_words(self.language)(self.world, event),
        )
        self._count(told.event)
        self.world = fold(self.world, told.event)
        self.version, self.at = told.version, told.event.at
        self.began_at = self.began_at or told.event.at
        return line

    def _count(self, event: Event) -> None:
        match event:
            case StepEnded() | StepInterrupted():
                agent = agent_of(event.step_id)
                self.spent[agent] = self.spent.get(agent, NOTHING).plus(event.spent)
                self.at_most |= isinstance(event, StepInterrupted) and bool(event.spent.tokens or event.spent.money)
                self.steps += isinstance(event, StepEnded)
                if isinstance(event, StepEnded) and event.state == "failed":
                    self.failures.append(f"{event.step_id}: {event.error}")
            case MessageSent():
                self.messages += 1
            case StepStarted():
                self.spent.setdefault(agent_of(event.step_id), NOTHING)
            case _:
                pass

    def total(self) -> Amounts:
        """What all agents spent together."""
        total = NOTHING
        for one in self.spent.values():
            total = total.plus(one)
        return total
