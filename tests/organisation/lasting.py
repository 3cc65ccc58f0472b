"""A manager in a base task that never ends, to whom a person writes again and again; its model answers at once.

Now and then it makes an agent and a task for a wish: what comes and goes beside it leaves nothing behind that grows.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Final, TypeVar

from greenroom.abilities.skills.planned.skills import planned
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.kit import Kit
from greenroom.app.organisation.founders import Founders, found
from greenroom.app.organisation.states import at_rest
from greenroom.app.organisation.words import BASE, KIT
from greenroom.app.reading import TextReader
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import UNLIMITED
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.ports.executor import Abilities
from greenroom.core.ports.model import ModelCard, ModelEvent, ModelRequest
from greenroom.core.rules.intents import SendMessage
from greenroom.core.state.message import Message
from greenroom.core.state.spec import AgentSpec
from tests.abilities.skills.planned.planners import DONE, NOTHING_MORE, Line, Script, message, said, step

V = TypeVar("V")
FULL: Final = 2000
SMALL: Final = 300
WINDOW: Final = 12_000
MANAGER, ANN = AgentId("manager"), AgentId("ann")
EVERY: Final = 15
"""Of so many wishes one becomes a task, with an agent of its own."""

WISH: Final = "Wish {}: tell me which tea to drink today, and how long it has to stand. " * 2


class Counting(Script):
    """Answers at once, and knows how long each prompt was and when it was asked for."""

    def __init__(self, wishes: int) -> None:
        answer = said("send_message", message("ann", text="Sencha, at eighty degrees, for two minutes. " * 3))
        lines: dict[tuple[str, str], Sequence[Line]] = {
            ("manager", "planning"): [_plans],
            ("manager", "send_message"): [answer],
            ("manager", "agent_manager"): [_makes],
            ("manager", "task_manager"): [_manages],
            ("manager", "reflection"): [NOTHING_MORE],
            ("manager", "compact"): ["Ann is told every day which tea to drink."],
        }
        for number in range(0, wishes, EVERY):
            lines[f"wu{number}", "planning"] = [said("planning", [step("think")])]
            lines[f"wu{number}", "think"] = [said("think", "Sencha, brewed twice. " * 20)]
            lines[f"wu{number}", "reflection"] = [NOTHING_MORE]
            lines[f"wu{number}", "summary"] = [DONE]
        super().__init__(lines)
        self.card = ModelCard(output=1000, window=WINDOW)
        self.at: list[float] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The line, and the time."""
        self.at.append(time.process_time())
        async for event in super().stream(request):
            yield event


def _told(request: ModelRequest, pattern: str) -> str:
    """What the step that is asked about says of this, and nothing that was said before."""
    found = re.search(pattern, request.messages[-1].content.partition("# current_step")[2])
    return found[1] if found is not None else ""


def _plans(request: ModelRequest) -> str:
    over, wish = _told(request, r"Stage (t\d+)\.s1 .*has nothing left to do"), _told(request, r"Wish (\d+):")
    if over:
        return said("planning", [step("task_manager", f"End {over}.")])
    if wish and int(wish) % EVERY == 0:
        make = (step("agent_manager", f"Make wu{wish}."), step("task_manager", f"Begin with wu{wish}."))
        return said("planning", [*make, step("send_message")])
    return said("planning", [step("send_message")])


def _makes(request: ModelRequest) -> str:
    name = _told(request, r"Make (wu\d+)\.")
    return said(
        "agent_manager", {"action": "init_new_agent", "agent_id": name, "role": "a taster", "skills": ["think"]}
    )


def _manages(request: ModelRequest) -> str:
    over, name = _told(request, r"End (t\d+)\."), _told(request, r"Begin with (wu\d+)\.")
    if over:
        return said("task_manager", {"action": "finish_task", "task_id": over, "state": "finished", "summary": "Mild."})
    stage = {"stage_intention": "Taste it", "agent_allocation": {name: "Say how it tastes."}}
    task = {"action": "add_task", "task_name": "Tasting", "task_intention": "How it tastes", "task_group": [name]}
    return said("task_manager", {**task, "stages": [stage]})


@dataclass(slots=True)
class Life:
    """What was seen of it: the bytes of each prompt, the processor's seconds of each step, and how it ended."""

    window: int
    prompts: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    messages: int = 0
    sums: int = 0
    tasks: int = 0
    agents: int = 0
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
    model = Counting(messages // 2)
    runtime = Runtime(MemoryLog(), kits={KIT: lambda _: Kit(abilities=Abilities(planned(model, reader=TextReader())))})
    founders = Founders(
        name="tea",
        managers=(AgentSpec(name="manager", style="plan", manager=True, skills=("think",)),),
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
            await _rested(runtime, team)
        sent = [one async for one in runtime.archive(team, "message") if isinstance(one, Message)]
        life = _seen(model, len(sent), messages // 2 - 1)
        life.tasks, life.agents = len(await runtime.ended_tasks(team)), len((await runtime.world(team)).agents) - 2
    finally:
        await runtime.close()
    return life


async def _rested(runtime: Runtime, team: TeamId) -> None:
    """Wait until nothing more happens by itself, in whichever task."""
    while not at_rest(await runtime.world(team)).settled:
        for task in tuple((await runtime.world(team)).tasks):
            await runtime.wait(team, task)


def _seen(model: Counting, messages: int, newest: int) -> Life:
    told = ["".join(one.content for one in request.messages) for request in model.asked]
    last = next(text for text, one in zip(reversed(told), reversed(model.asked), strict=True) if _steps(one))
    return Life(
        window=model.card.window,
        prompts=[len(one.encode()) for one in told],
        seconds=[after - before for before, after in pairwise(model.at)],
        messages=messages,
        sums=sum(one.purpose.skill == "compact" for one in model.asked),
        newest_is_told=f"Wish {newest}:" in last,
        first_wish_is_told="Wish 0:" in last,
    )


def _steps(request: ModelRequest) -> bool:
    """Whether it is a step of the manager's work; what sums up reads only what it sums up."""
    return request.purpose.agent == MANAGER and request.purpose.skill != "compact"
