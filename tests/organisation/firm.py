"""An organisation that plays the story: founded like every other one, on a log that a test chooses, with ann in it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from greenroom.abilities.skills.planned.skills import planned
from greenroom.abilities.tools.tool import long_tail
from greenroom.app.kit import Kit
from greenroom.app.organisation.founders import Founders, found, house_agent
from greenroom.app.organisation.inbox import Letter
from greenroom.app.organisation.people import HumanAgent
from greenroom.app.organisation.states import at_rest
from greenroom.app.organisation.words import KIT
from greenroom.app.reading import TextReader
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, StageId, TaskId, TeamId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Abilities, Bench, Outcome
from greenroom.core.ports.log import Store
from greenroom.core.ports.model import Models, ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World
from greenroom.testing.scripted import ScriptedModel
from tests.organisation.script import cues
from tests.organisation.words import WORDS

ANN, MANAGER, WU, XI = AgentId("ann"), AgentId("manager"), AgentId("wu"), AgentId("xi")
T1, T2 = TaskId("t1"), TaskId("t2")
LIMITS: Final = Limits(tokens=20_000_000, steps=500, hops=200, depth=8)
TASTE: Final = ToolSpec(
    name="taste",
    description="Tastes a cup of tea.",
    parameters={"type": "object", "properties": {"cup": {"type": "string"}}, "required": ["cup"]},
)


class Taste:
    """A long-tail tool. Each time that it runs is a line in a file outside, so that it can be counted."""

    type: StepType = "tool"
    name: str = "taste"
    description: str = TASTE.description

    def __init__(self, book: Path, pace: float = 0.0) -> None:
        self.card = ToolCard(spec=TASTE, group="read", effect="pure", long_tail=True)
        self._book = book
        self._pace = pace

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing outside."""
        return (Target(kind="tool", value=self.name),)

    def terms(self, _: World, __: Step) -> Terms:
        """To taste again gives the same, so it may run again when it was cut off."""
        return Terms(effect="pure")

    async def run(self, bench: Bench) -> Outcome:
        """Taste."""
        cup = str((bench.step.work.instruction_content or {})["cup"])
        await asyncio.sleep(self._pace)
        with self._book.open("a", encoding="utf-8") as file:
            file.write(f"{bench.step.step_id} {bench.step.attempt} {cup}\n")
            file.flush()
            os.fsync(file.fileno())
        return Outcome(result={"output": f"tasted: {cup}"})


def kits(folder: Path, language: str, model: Models, *, pace: float = 0.0) -> dict[str, Callable[[object], Kit]]:
    """The kit: the twelve skills, the tool, and the house's own staff to make agents from."""
    taste = long_tail(Taste(folder / "tasted", pace))
    skills = planned(model, (TASTE,), reader=TextReader())
    staff = tuple(evolve(house_agent(one, language), tools=("taste",)) for one in ("researcher", "writer"))
    kit = Kit(abilities=Abilities((*skills, taste)), blueprints=staff)
    return {KIT: lambda _: kit}


def founders(language: str, folder: Path, limits: Limits = LIMITS) -> Founders:
    """The manager of the house, and ann."""
    return Founders(
        name="tea",
        managers=(evolve(house_agent("manager", language), tools=()),),
        people=(AgentSpec(name="ann", role="a person", kind="human", language=language),),
        limits=limits,
        language=language,
        workspace=str(folder),
    )


@dataclass(frozen=True, slots=True)
class Firm:
    """It runs, and ann is there."""

    runtime: Runtime
    team: TeamId
    ann: HumanAgent
    language: str = "en"

    async def world(self) -> World:
        """What is true."""
        return await self.runtime.world(self.team)

    async def rested(self) -> str:
        """Wait until nothing more happens by itself; how it stands then."""
        while True:
            for task in tuple((await self.world()).tasks):
                await self.runtime.wait(self.team, task)
            stands = at_rest(await self.world())
            if stands.settled:
                return stands.word

    async def play(self) -> None:
        """Be ann until she has her guide. What she has done in an earlier life she does not do again."""
        words = WORDS[self.language]
        if not any(one.message == words["request"] for one in await self.ann.messages()):
            await self.ann.ask(words["request"], MANAGER)
        while await self.rested() == "waiting":
            ready = [one for one in await self.ann.inbox() if _is_time(words, await self.world(), one)]
            assert ready, "nobody goes on, and ann has nothing to say"
            await self.ann.answer(ready[0], words[_ANSWERS[_asked(words, ready[0])]])


_ANSWERS: Final = {"which": "green", "taste": "bitter", "title": "short", "print": "yes"}


def _asked(words: Mapping[str, str], letter: Letter) -> str:
    return next(name for name in _ANSWERS if words[name] == letter.message.message)


def _is_time(words: Mapping[str, str], world: World, letter: Letter) -> bool:
    """Ann answers in such an order that whoever asks another one asks somebody who waits for her."""
    owed = {one.message for one in world.mail.values()}
    match _asked(words, letter):
        case "taste":
            return words["title"] in owed
        case "title":
            return words["print"] in owed
        case "print":
            stage = world.stages[StageId("t2.s2")]
            return next(one.state for one in stage.members if one.agent_id == XI) == "finished"
        case _:
            return True


async def opened(log: Store, folder: Path, language: str, *, pace: float = 0.0) -> Firm:
    """The organisation of this log; founded, if it is not there yet. It runs."""
    runtime = Runtime(log, kits=kits(folder, language, ScriptedModel(cues(language), pace=pace), pace=pace))
    teams = [TeamId(one.stream) for one in await log.streams() if one.head.version]
    team = teams[0] if teams else await found(runtime, founders(language, folder))
    await runtime.start(team)
    return Firm(runtime, team, HumanAgent(runtime, team, ANN), language)


@asynccontextmanager
async def firm(log: Store, folder: Path, language: str = "en", *, pace: float = 0.0) -> AsyncIterator[Firm]:
    """The same, until a test is over."""
    made = await opened(log, folder, language, pace=pace)
    try:
        yield made
    finally:
        await made.runtime.close()


def tasted(folder: Path) -> Sequence[str]:
    """Every time that the tool ran: step, attempt, cup."""
    return (folder / "tasted").read_text(encoding="utf-8").splitlines()
