"""An organisation with ann that plays a story, founded in the usual way on a log of the test.

The cues of its model depend on the state alone, so that a restarted process gets the same replies.

    ann asks the manager for a guide
    manager   asks for blueprints, makes wu and xi, makes a task with two stages
    s1 wu     tastes twice (a long-tail tool), asks ann, reflects, thinks once more, summarises
    manager   ends the stage and adds a third one
    s2 wu, xi ask ann and each other, each while it waits itself; both summarise
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

from greenroom.abilities.skills.planned.skills import PLANNED_SKILLS, build_planned_skills
from greenroom.abilities.tools.tool import wrap_long_tail
from greenroom.app.organisation.creation import OrganisationSpec, create_organisation, load_builtin_agent
from greenroom.app.organisation.inbox import InboxMessage, read_states, summarise_status
from greenroom.app.organisation.people import HumanAgent
from greenroom.app.organisation.phrases import ORGANISATION_KIT
from greenroom.app.runtime import Runtime
from greenroom.app.text_reader import TextReader
from greenroom.core.base.amounts import NOTHING, Limits
from greenroom.core.base.ids import AgentId, StageId, TeamId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Capabilities, Outcome, StepContext
from greenroom.core.ports.log import Store
from greenroom.core.ports.model import Models, ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.knowledge import Note
from greenroom.core.state.mas_format import collect_working_memory
from greenroom.core.state.message import Message
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState
from greenroom.testing.scripted import Cue, ScriptedModel, ScriptedReply

WORDS: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    Path(__file__).with_name("words.toml").read_text(encoding="utf-8")
)
TAGS = {one.name: one.tag for one in PLANNED_SKILLS}
BASE, MINE = "manager@t1", "manager@t2"
S1, S2_WU, S2_XI, S3 = "wu@t2.s1.1", "wu@t2.s2.1", "xi@t2.s2.2", "xi@t2.s3.1"


def said(skill: str, value: object, memory: str = "") -> ScriptedReply:
    """Build a reply between the tags of a skill."""
    body = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    kept = f"\n<persistent_memory>{memory}</persistent_memory>" if memory else ""
    return ScriptedReply(text=f"<{TAGS[skill]}>{body}</{TAGS[skill]}>{kept}")


def step(executor: str, text: str = "Do it.", type_: str = "skill") -> dict[str, object]:
    """Build a step of a plan."""
    return {"step_intention": f"to {executor}", "type": type_, "executor": executor, "text_content": text}


def letter(receiver: str, text: str, *, waits: bool = False, stage: str = "no_relative") -> dict[str, object]:
    """Build the answer of send_message."""
    return {
        "receiver": [receiver],
        "message": text,
        "stage_relative": stage,
        "need_reply": waits,
        "waiting": waits,
    }


class Scene:
    """The cues of one conversation, in order by skill."""

    def __init__(self, thread: str) -> None:
        self._agent, _, _ = thread.partition("@")
        self._thread = thread
        self._turns: dict[str, int] = {}
        self.cues: list[Cue] = []

    def says(self, skill: str, *values: object, memory: str = "") -> Scene:
        """Add the replies of a skill, in order."""
        for value in values:
            self._turns[skill] = self._turns.get(skill, 0) + 1
            self._add(skill, said(skill, value, memory), turn=self._turns[skill])
        return self

    def answers(self, value: object) -> Scene:
        """Add the answer to a waiting agent. It counts as a turn of the skill."""
        self._add("send_message", said("send_message", value), answering=True)
        return self

    def plans(self, *steps: dict[str, object]) -> Scene:
        """Add a plan."""
        return self.says("planning", list(steps))

    def _add(self, skill: str, reply: ScriptedReply, turn: int | None = None, *, answering: bool = False) -> None:
        self.cues.append(
            Cue(agent=self._agent, thread=self._thread, skill=skill, turn=turn, answering=answering, reply=reply)
        )


def cues(language: str) -> tuple[Cue, ...]:
    """Return all cues."""
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
    """Yield scenes in which each agent asks the other while that one waits for ann: a waiting agent still answers."""
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


ANN, MANAGER, XI = AgentId("ann"), AgentId("manager"), AgentId("xi")
LIMITS: Final = Limits(tokens=20_000_000, steps=500, hops=200, depth=8)
TASTE: Final = ToolSpec(
    name="taste",
    description="Tastes a cup of tea.",
    parameters={"type": "object", "properties": {"cup": {"type": "string"}}, "required": ["cup"]},
)


class Taste:
    """A long-tail tool. Each run appends a line to a file outside, so that runs can be counted."""

    type: StepType = "tool"
    name: str = "taste"
    description: str = TASTE.description

    def __init__(self, book: Path, pace: float = 0.0) -> None:
        self.card = ToolCard(spec=TASTE, group="read", effect="pure", long_tail=True)
        self._book = book
        self._pace = pace

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Return no targets."""
        return (Target(kind="tool", value=self.name),)

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return terms that allow a retry: tasting again gives the same result."""
        return StepTerms(effect="pure")

    async def run(self, context: StepContext) -> Outcome:
        """Taste."""
        cup = str((context.step.work.instruction_content or {})["cup"])
        await asyncio.sleep(self._pace)
        with self._book.open("a", encoding="utf-8") as file:
            file.write(f"{context.step.step_id} {context.step.attempt} {cup}\n")
            file.flush()
            os.fsync(file.fileno())
        return Outcome(result={"output": f"tasted: {cup}"})


def kits(
    folder: Path, language: str, model: Models, *, pace: float = 0.0
) -> dict[str, Callable[[object], Capabilities]]:
    """Return the capabilities: the twelve skills, the tool, and the built-in staff as blueprints."""
    taste = wrap_long_tail(Taste(folder / "tasted", pace))
    skills = build_planned_skills(model, (TASTE,), reader=TextReader())
    staff = tuple(evolve(load_builtin_agent(one, language), tools=("taste",)) for one in ("researcher", "writer"))
    kit = Capabilities((*skills, taste), agent_specs=staff)
    return {ORGANISATION_KIT: lambda _: kit}


def founders(language: str, folder: Path, limits: Limits = LIMITS) -> OrganisationSpec:
    """Return the built-in manager, and ann."""
    return OrganisationSpec(
        name="tea",
        managers=(evolve(load_builtin_agent("manager", language), tools=()),),
        people=(AgentSpec(name="ann", role="a person", kind="human", language=language),),
        limits=limits,
        language=language,
        workspace=str(folder),
    )


@dataclass(frozen=True, slots=True)
class Firm:
    """A running organisation with ann."""

    runtime: Runtime
    team: TeamId
    ann: HumanAgent
    language: str = "en"

    async def state(self) -> TeamState:
        """Return the team state."""
        return await self.runtime.state(self.team)

    async def rested(self) -> str:
        """Wait until the team is idle and return its status."""
        while True:
            for task in tuple((await self.state()).tasks):
                await self.runtime.wait(self.team, task)
            stands = summarise_status(await self.state())
            if stands.is_settled:
                return stands.state

    async def play(self) -> None:
        """Act as ann until she has her guide. Do not repeat actions of an earlier process."""
        words = WORDS[self.language]
        if not any(one.message == words["request"] for one in await self.ann.messages()):
            await self.ann.ask(words["request"], MANAGER)
        while await self.rested() == "waiting":
            ready = [one for one in await self.ann.inbox() if _is_time(words, await self.state(), one)]
            assert ready, "nobody goes on, and ann has nothing to say"
            await self.ann.answer(ready[0], words[_ANSWERS[_asked(words, ready[0])]])


_ANSWERS: Final = {"which": "green", "taste": "bitter", "title": "short", "print": "yes"}


def _asked(words: Mapping[str, str], letter: InboxMessage) -> str:
    return next(name for name in _ANSWERS if words[name] == letter.message.message)


def _is_time(words: Mapping[str, str], state: TeamState, letter: InboxMessage) -> bool:
    """Return whether ann answers now. Her order ensures that agents ask others that wait for her."""
    owed = {one.message for one in state.mail.values()}
    match _asked(words, letter):
        case "taste":
            return words["title"] in owed
        case "title":
            return words["print"] in owed
        case "print":
            stage = state.stages[StageId("t2.s2")]
            return next(one.state for one in stage.members if one.agent_id == XI) == "finished"
        case _:
            return True


async def opened(log: Store, folder: Path, language: str, *, pace: float = 0.0) -> Firm:
    """Open and run the organisation of this log. Found it if it does not exist yet."""
    runtime = Runtime(
        log, capability_factories=kits(folder, language, ScriptedModel(cues(language), pace=pace), pace=pace)
    )
    teams = [TeamId(one.stream) for one in await log.streams() if one.head.version]
    team = teams[0] if teams else await create_organisation(runtime, founders(language, folder))
    await runtime.start(team)
    return Firm(runtime, team, HumanAgent(runtime, team, ANN), language)


@asynccontextmanager
async def firm(log: Store, folder: Path, language: str = "en", *, pace: float = 0.0) -> AsyncIterator[Firm]:
    """Open the organisation until the test ends."""
    made = await opened(log, folder, language, pace=pace)
    try:
        yield made
    finally:
        await made.runtime.close()


def tasted(folder: Path) -> Sequence[str]:
    """Return every run of the tool: step, attempt, cup."""
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
"""The steps of each agent, in order. The manager's last step did not run: its task is over."""


async def order(firm: Firm) -> dict[str, str]:
    """Return the steps of each agent, with failures marked."""
    found: dict[str, list[str]] = defaultdict(list)
    async for one in firm.runtime.archive(firm.team, "step"):
        if isinstance(one, Step):
            found[one.agent_id].append(f"{'' if one.state == 'finished' else '!'}{one.work.executor}")
    return {name: " ".join(done) for name, done in found.items()}


async def facts(firm: Firm) -> dict[str, object]:
    """Return all relevant facts: without times, versions, and the order of concurrent steps."""
    state = await firm.state()
    tasks = await read_states(firm.runtime, firm.team, "task")
    stages = [one async for one in firm.runtime.archive(firm.team, "stage") if isinstance(one, Stage)]
    return {
        "order": await order(firm),
        "tasks": {name: (one["execution_state"], one["task_summary"]) for name, one in tasks.items()},
        "stages": {
            one.stage_id: (one.state, [(it.agent_id, it.state, it.completion) for it in one.members]) for one in stages
        },
        "notes": await _notes(firm),
        "messages": sorted(await _messages(firm)),
        "memory": {name: one.memory for name, one in state.agents.items()},
        "results": await _results(firm),
        "pool": sorted((await firm.ann.pool()).global_messages),
    }


async def left(firm: Firm) -> dict[str, object]:
    """Return everything that is left over. It must be empty."""
    state = await firm.state()
    return {
        "steps": list(state.steps),
        "waits": list(state.waits),
        "letters": list(state.mail),
        "timers": list(state.timers),
        "locks": [name for name, one in state.agents.items() if one.step_lock or one.running],
        "stages": list(state.stages),
        "work": {
            name: found
            for name in state.agents
            if (found := collect_working_memory(state, name)) and found != {"t1": {}}
        },
        "threads": sorted(one.task_id for one in state.threads.values() if one.task_id != "t1"),
        "reserved": [name for name, one in state.budgets.items() if one.reserved != NOTHING],
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
    """Return the result of each skill, by its key."""
    found: dict[str, object] = {}
    async for one in firm.runtime.archive(firm.team, "step"):
        if isinstance(one, Step):
            kept = {key: value for key, value in (one.result or {}).items() if key not in ("usage", "by", "text")}
            found[one.step_id] = (one.work.executor, one.state, kept)
    return found
