"""Who leads the browser: a model that is asked what to do next, as long as there is something left to pay it with."""

from __future__ import annotations

from typing import Protocol

from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.records import record
from greenroom.core.ports.executor import Bench
from greenroom.core.ports.model import ToolCall
from greenroom.core.state.step import Step, Terms
from greenroom.core.state.world import World


@record
class Question:
    """What it is asked: how it works, what it sees now, and how often it was asked. `left` is what may be spent."""

    turn: int
    system: str
    seen: str
    left: Amounts


@record
class Thought:
    """What it answered, and what that cost."""

    calls: tuple[ToolCall, ...] = ()
    text: str = ""
    spent: Amounts = NOTHING


class Mind(Protocol):
    """The model of an agent, for errands."""

    def terms(self, world: World, step: Step) -> Terms:
        """What an errand may cost; `WorldFault` where there is no model."""
        ...

    def calls(self, bench: Bench) -> bool:
        """Whether it makes calls; else it is told to answer in text."""
        ...

    async def think(self, bench: Bench, question: Question) -> Thought:
        """Ask it. A fault says what it cost; asking for more than is left is a `WorldFault`."""
        ...
