"""An organisation that plays a story, with ann in it: founded like every other one, on a log that a test chooses.

A cue of its model knows its moment by the state alone, so that a process which begins again in the middle says the
same.

    ann asks the manager for a guide
    manager   asks the house for blueprints, makes wu and xi, makes a task with two stages
    s1 wu     tastes twice (a long-tail tool), asks ann, looks back, thinks once more, sums up
    manager   ends the stage and adds a third one
    s2 wu, xi ask ann and each other, each while it waits itself; both sum up
    s3 xi     checks it and tells the manager
    manager   ends the stage and the task, and ann reads the result
"""

from __future__ import annotations

import asyncio
import json
import os
import tomllib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from greenroom.abilities.skills.planned.skills import TWELVE, planned
from greenroom.abilities.tools.tool import long_tail
from greenroom.app.kit import Kit
from greenroom.app.organisation.founders import Founders, found, house_agent
from greenroom.app.organisation.inbox import Letter, at_rest, states
from greenroom.app.organisation.people import HumanAgent
from greenroom.app.organisation.words import KIT
from greenroom.app.reading import TextReader
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import NOTHING, Limits
from greenroom.core.base.ids import AgentId, StageId, TaskId, TeamId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Abilities, Bench, Outcome
from greenroom.core.ports.log import Store
from greenroom.core.ports.model import Models, ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.knowledge import Note
from greenroom.core.state.message import Message
from greenroom.core.state.portrait import working_memory
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World
from greenroom.testing.scripted import Cue, Reply, ScriptedModel

WORDS: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    Path(__file__).with_name("words.toml").read_text(encoding="utf-8")
)
TAGS = {one.name: one.tag for one in TWELVE}
BASE, MINE = "manager@t1", "manager@t2"
S1, S2_WU, S2_XI, S3 = "wu@t2.s1.1", "wu@t2.s2.1", "xi@t2.s2.2", "xi@t2.s3.1"


def said(skill: str, value: object, memory: str = "") -> Reply:
    """A reply between the tags of a skill."""
    body = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    kept = f"\n<persistent_memory>{memory}</persistent_memory>" if memory else ""
    return Reply(text=f"<{TAGS[skill]}>{body}</{TAGS[skill]}>{kept}")


def step(executor: str, text: str = "Do it.", type_: str = "skill") -> dict[str, object]:
    """A step of a plan."""
    return {"step_intention": f"to {executor}", "type": type_, "executor": executor, "text_content": text}


def letter(receiver: str, text: str, *, waits: bool = False, stage: str = "no_relative") -> dict[str, object]:
    """What send_message sends."""
    return {
        "receiver": [receiver],
        "message": text,
        "stage_relative": stage,
        "need_reply": waits,
        "waiting": waits,
    }


class Scene:
    """The cues of one conversation, each skill's in their order."""

    def __init__(self, thread: str) -> None:
        self._agent, _, _ = thread.partition("@")
        self._thread = thread
        self._turns: dict[str, int] = {}
        self.cues: list[Cue] = []

    def says(self, skill: str, *values: object, memory: str = "") -> Scene:
        """What a skill says the first time, the second time, …"""
        for value in values:
            self._turns[skill] = self._turns.get(skill, 0) + 1
            self._add(skill, said(skill, value, memory), turn=self._turns[skill])
        return self

    def answers(self, value: object) -> Scene:
        """What it answers to whoever waits for it. That counts as a turn of the skill."""
        self._add("send_message", said("send_message", value), answering=True)
        return self

    def plans(self, *steps: dict[str, object]) -> Scene:
        """What a plan has."""
        return self.says("planning", list(steps))

    def _add(self, skill: str, reply: Reply, turn: int | None = None, *, answering: bool = False) -> None:
        self.cues.append(
            Cue(agent=self._agent, thread=self._thread, skill=skill, turn=turn, answering=answering, reply=reply)
        )


def cues(language: str) -> tuple[Cue, ...]:
    """All of them."""
    told = WORDS[language]
    scenes = (*_manager(told), _first_stage(told), *_second_stage(told), _third_stage(told))
    return tuple(cue for scene in scenes for cue in scene.cues)


def _manager(told: Mapping[str, str]) -> Iterator[Scene]:
    def stage(goal: str, **duties: str) -> dict[str, object]:
        return {"stage_intention": told[goal], "agent_allocation": {who: told[duty] for who, duty in duties.items()}}

    def ends(what: str, name: str, summary: str) -> dict[str, object]:
        return {"action": f"finish_{what}", f"{what}_id": name, "state": "finished", "summary": told[summary]}

    task = {
        "action": "add_task",
        "task_name": told["task"],
        "task_intention": told["goal"],
        "task_group": ["wu", "xi", "ann"],
        "stages": [stage("find", wu="wu_finds"), stage("write", wu="wu_writes", xi="xi_titles")],
    }
    yield (
        Scene(BASE)
        .plans(step("ask_info"), step("agent_manager"), step("agent_manager"), step("task_manager"))
        .says("ask_info", {"type": "blueprints", "about": []})
        .says("process_message", told["seen"])
        .says("agent_manager", *(_makes(*one) for one in (("wu", "researcher"), ("xi", "writer"))))
        .says("task_manager", task)
        .says("reflection", [])
    )
    more = {"action": "add_stage", "task_id": "t2", "stages": [stage("check", xi="xi_checks")]}
    yield (
        Scene(MINE)
        .plans(step("task_manager"), step("task_manager"))
        .plans(step("task_manager"))
        .plans(step("task_manager"), step("task_manager"))
        .says("task_manager", ends("stage", "t2.s1", "found"), more, ends("stage", "t2.s2", "written"))
        .says("task_manager", ends("stage", "t2.s3", "fine"), ends("task", "t2", "result"))
        .says("process_message", told["seen"])
        .says("reflection", [], [])
    )


def _makes(name: str, blueprint: str) -> dict[str, object]:
    return {"action": "init_new_agent", "agent_id": name, "blueprint": blueprint}


def _first_stage(told: Mapping[str, str]) -> Scene:
    return (
        Scene(S1)
        .plans(step("taste", told["first_cup"], "tool"), step("send_message"))
        .says("instruction_generation", {"cup": told["first_cup"]}, {"cup": told["second_cup"]})
        .says("tool_decision", {"decision": "continue", "direction": told["second_cup"]})
        .says("tool_decision", {"decision": "end", "direction": told["bitter_end"]})
        .says("send_message", letter("ann", told["which"], waits=True, stage="t2.s1"))
        .says("process_message", told["seen"], memory=f"# Ann\n{told['memory']}")
        .says("reflection", [step("think")], [])
        .says("think", told["thought"])
        .says("summary", _summary(told["found"]))
    )


def _second_stage(told: Mapping[str, str]) -> Iterator[Scene]:
    """Each asks the other one when that one waits for ann: whoever waits still answers."""
    yield (
        Scene(S2_WU)
        .plans(step("send_message"), step("send_message"), step("send_message"))
        .says("send_message", letter("ann", told["taste"], waits=True, stage="t2.s2"))
        .says("send_message", letter("xi", told["how_long"], waits=True, stage="t2.s2"))
        .says("send_message", letter("ann", told["print"], waits=True, stage="t2.s2"))
        .answers(letter("xi", told["is_ready"], stage="t2.s2"))
        .says("process_message", told["seen"], told["seen"], told["seen"])
        .says("reflection", [])
        .says("summary", _summary(told["written"]))
    )
    scene = Scene(S2_XI).plans(step("send_message"), step("send_message"))
    scene.says("send_message", letter("ann", told["title"], waits=True, stage="t2.s2"), "its answer is the second one")
    yield (
        scene.answers(letter("wu", told["two_words"], stage="t2.s2"))
        .says("send_message", letter("wu", told["ready"], waits=True, stage="t2.s2"))
        .says("process_message", told["seen"], told["seen"])
        .says("reflection", [])
        .says("summary", _summary(told["titled"]))
    )


def _third_stage(told: Mapping[str, str]) -> Scene:
    return (
        Scene(S3)
        .plans(step("think"), step("send_message"))
        .says("think", told["fine"])
        .says("send_message", letter("manager", told["checked"]))
        .says("reflection", [])
        .says("summary", _summary(told["fine"]))
    )


def _summary(text: str) -> dict[str, object]:
    return {"completion_summary": text, "state": "finished"}


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


ORDER: Mapping[str, str] = {
    "manager": (
        "planning ask_info process_message agent_manager agent_manager task_manager reflection "
        "planning task_manager task_manager reflection "
        "planning task_manager reflection process_message "
        "planning task_manager task_manager !reflection"
    ),
    "wu": (
        "planning instruction_generation taste tool_decision instruction_generation taste tool_decision "
        "send_message process_message reflection think reflection summary "
        "planning send_message process_message send_message process_message send_message send_message process_message "
        "reflection summary"
    ),
    "xi": (
        "planning send_message send_message process_message send_message process_message reflection summary "
        "planning think send_message reflection summary"
    ),
    "ann": "send_message send_message send_message send_message send_message",
}
"""The steps of everybody, in their order. The last one of the manager was not run: its task is over."""


async def order(firm: Firm) -> dict[str, str]:
    """What everybody did; what did not end well is marked."""
    found: dict[str, list[str]] = defaultdict(list)
    async for one in firm.runtime.archive(firm.team, "step"):
        if isinstance(one, Step):
            found[one.agent_id].append(f"{'' if one.state == 'finished' else '!'}{one.work.executor}")
    return {name: " ".join(done) for name, done in found.items()}


async def facts(firm: Firm) -> dict[str, object]:
    """All that counts. Times and versions are not among it, nor in which order two agents did something at once."""
    world = await firm.world()
    tasks = await states(firm.runtime, firm.team, "task")
    stages = [one async for one in firm.runtime.archive(firm.team, "stage") if isinstance(one, Stage)]
    return {
        "order": await order(firm),
        "tasks": {name: (one["execution_state"], one["task_summary"]) for name, one in tasks.items()},
        "stages": {
            one.stage_id: (one.state, [(it.agent_id, it.state, it.completion) for it in one.members]) for one in stages
        },
        "notes": await _notes(firm),
        "messages": sorted(await _messages(firm)),
        "memory": {name: one.memory for name, one in world.agents.items()},
        "results": await _results(firm),
        "pool": sorted((await firm.ann.pool()).global_messages),
    }


async def left(firm: Firm) -> dict[str, object]:
    """What must be left of all that: nothing."""
    world = await firm.world()
    return {
        "steps": list(world.steps),
        "waits": list(world.waits),
        "letters": list(world.mail),
        "timers": list(world.timers),
        "locks": [name for name, one in world.agents.items() if one.step_lock or one.running],
        "stages": list(world.stages),
        "work": {
            name: found for name in world.agents if (found := working_memory(world, name)) and found != {"t1": {}}
        },
        "threads": sorted(one.task_id for one in world.threads.values() if one.task_id != "t1"),
        "reserved": [name for name, one in world.budgets.items() if one.reserved != NOTHING],
    }


NOTHING_LEFT: dict[str, object] = {
    **{name: [] for name in ("steps", "waits", "letters", "timers", "locks", "stages", "threads", "reserved")},
    "work": {},
}


async def _notes(firm: Firm) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    async for one in firm.runtime.archive(firm.team, "note"):
        if isinstance(one, Note):
            found[one.agent_id].append(f"{one.stage_id}: {one.content}")
    return dict(found)


async def _messages(firm: Firm) -> list[tuple[str, ...]]:
    return [
        (one.message_id, *one.receiver, one.message, *(one.waiting or ()), one.return_waiting_id or "")
        async for one in firm.runtime.archive(firm.team, "message")
        if isinstance(one, Message)
    ]


async def _results(firm: Firm) -> dict[str, object]:
    """What each skill came to, by its own key."""
    found: dict[str, object] = {}
    async for one in firm.runtime.archive(firm.team, "step"):
        if isinstance(one, Step):
            kept = {key: value for key, value in (one.result or {}).items() if key not in ("usage", "by", "text")}
            found[one.step_id] = (one.work.executor, one.state, kept)
    return found
