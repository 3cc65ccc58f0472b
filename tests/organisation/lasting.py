"""A manager in a base task that never ends, to whom a person writes again and again; its model answers at once."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Final, TypeVar

from greenroom.abilities.skills.planned.twelve import planned
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.kit import Kit
from greenroom.app.organisation.founding import Founders, found
from greenroom.app.organisation.names import BASE, KIT
from greenroom.app.reading import TextReader
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import UNLIMITED
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.executor import Abilities
from greenroom.core.ports.model import ModelCard, ModelEvent, ModelRequest
from greenroom.core.rules.intents import SendMessage
from greenroom.core.state.message import Message
from greenroom.core.state.spec import AgentSpec
from tests.abilities.skills.planned.planners import NOTHING_MORE, Script, message, said, step

V = TypeVar("V")
FULL: Final = 2000
SMALL: Final = 300
WINDOW: Final = 12_000
MANAGER, ANN = AgentId("manager"), AgentId("ann")
WISH: Final = "Wish {}: tell me which tea to drink today, and how long it has to stand. " * 2


class Counting(Script):
    """Answers at once, and knows how long each prompt was and when it was asked for."""

    def __init__(self) -> None:
        answer = said("send_message", message("ann", text="Sencha, at eighty degrees, for two minutes. " * 3))
        super().__init__(
            {
                ("manager", "planning"): [said("planning", [step("send_message")])],
                ("manager", "send_message"): [answer],
                ("manager", "reflection"): [NOTHING_MORE],
                ("manager", "compact"): ["Ann is told every day which tea to drink."],
            }
        )
        self.card = ModelCard(output=1000, window=WINDOW)
        self.at: list[float] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The line, and the time."""
        self.at.append(time.process_time())
        async for event in super().stream(request):
            yield event


@dataclass(slots=True)
class Life:
    """What was seen of it: the bytes of each prompt, the processor's seconds of each step, and how it ended."""

    window: int
    prompts: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    messages: int = 0
    sums: int = 0
    newest_is_told: bool = False
    first_wish_is_told: bool = False

    def early(self, seen: Sequence[V]) -> Sequence[V]:
        """The second fifth of what was seen: by then it has been summed up."""
        return seen[len(seen) // 5 : 2 * len(seen) // 5]

    def later(self, seen: Sequence[V]) -> Sequence[V]:
        """The last fifth."""
        return seen[-len(seen) // 5 :]

    @property
    def growth(self) -> float:
        """How many times the processor's time for a step has become, in the middle."""
        return median(self.later(self.seconds)) / median(self.early(self.seconds))


async def lasting(messages: int) -> Life:
    """Let Ann and the manager write so many messages to each other, one after the other."""
    model = Counting()
    runtime = Runtime(MemoryLog(), kits={KIT: lambda _: Kit(abilities=Abilities(planned(model, reader=TextReader())))})
    founders = Founders(
        name="tea",
        managers=(AgentSpec(name="manager", style="plan", manager=True),),
        people=(AgentSpec(name="ann", kind="human"),),
        limits=UNLIMITED,
        language="en",
        workspace="",
    )
    try:
        team = await found(runtime, founders)
        await runtime.start(team)
        for number in range(messages // 2):
            wish = SendMessage(
                task_id=BASE,
                receiver=(MANAGER,),
                message=WISH.format(number, number),
                need_reply=True,
                kind="request",
                sender=ANN,
            )
            await runtime.ask(team, wish)
            await runtime.wait(team, BASE)
        sent = [one async for one in runtime.archive(team, "message") if isinstance(one, Message)]
    finally:
        await runtime.close()
    return _seen(model, len(sent), messages // 2 - 1)


def _seen(model: Counting, messages: int, newest: int) -> Life:
    told = ["".join(one.content for one in request.messages) for request in model.asked]
    return Life(
        window=model.card.window,
        prompts=[len(one.encode()) for one in told],
        seconds=[after - before for before, after in pairwise(model.at)],
        messages=messages,
        sums=sum(one.purpose.skill == "compact" for one in model.asked),
        newest_is_told=f"Wish {newest}:" in told[-1],
        first_wish_is_told="Wish 0:" in told[-1],
    )
