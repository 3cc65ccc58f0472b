"""A team of planning agents in memory with a scripted model, and the requests that it got."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from greenroom.abilities.skills.planned.skill import Skill
from greenroom.abilities.skills.planned.skills import PLANNED_SKILLS, build_planned_skills
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.runtime import Runtime
from greenroom.app.text_reader import TextReader
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Capabilities, Executor
from greenroom.core.ports.model import (
    Failed,
    Finished,
    Model,
    ModelCard,
    ModelEvent,
    ModelRequest,
    ModelTextDelta,
    ToolSpec,
    Usage,
)
from greenroom.core.rules.intents import AddTask, QueueSteps, StagePlan, SubtaskPlan
from greenroom.core.state.knowledge import Note
from greenroom.core.state.message import Message
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step, Work
from greenroom.core.state.team_state import TeamState
from tests.abilities.skills import talks

ANN, BOB, BOSS, KIM, T1 = talks.ANN, talks.BOB, AgentId("boss"), AgentId("kim"), talks.T1
TAGS = {one.name: one.tag for one in PLANNED_SKILLS}
THINKS = ("think", "quick_think", "ask_info")

ECHO = ToolSpec(
    name="echo",
    description="Says it back.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)

Line = str | Callable[[ModelRequest], str] | ModelEvent


def said(skill: str, value: object, memory: str = "") -> str:
    """Write a reply between the tags of a skill."""
    body = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    kept = f"\n<persistent_memory>\n{memory}\n</persistent_memory>" if memory else ""
    return f"<{TAGS[skill]}>\n{body}\n</{TAGS[skill]}>{kept}"


def step(executor: str, text: str = "Do it.", type_: str = "skill", **more: object) -> dict[str, object]:
    return {"step_intention": f"to {executor}", "type": type_, "executor": executor, "text_content": text, **more}


def tool(name: str = "echo", text: str = "Say hello.", **more: object) -> dict[str, object]:
    return step(name, text, "tool", **more)


def message(*receiver: str, text: str = "Hello.", **more: object) -> dict[str, object]:
    usual = {"stage_relative": "no_relative", "need_reply": False, "waiting": False}
    return {"receiver": list(receiver), "message": text, **usual, **more}


DONE = said("summary", {"completion_summary": "All is done.", "state": "finished"})
NOTHING_MORE = said("reflection", [])


class Script:
    """Plays the lines of each agent and skill in order. The last line repeats."""

    name = "fake:script"

    def __init__(self, lines: Mapping[tuple[str, str], Sequence[Line]], *, strict: bool = False) -> None:
        self.card = ModelCard(output=1000, window=200_000, strict=strict)
        self.asked: list[ModelRequest] = []
        self._lines = {key: list(told) for key, told in lines.items()}

    def get_model(self, _: str) -> Model:
        """Return this model for every name."""
        return self

    def price(self, read: int, written: int) -> int | None:
        return read + written

    def told(self, skill: str, number: int = 0) -> str:
        """Return the whole prompt of a step of this skill."""
        found = [one for one in self.asked if one.purpose.skill == skill]
        return "\n\n".join(one.content for one in found[number].messages)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.append(request)
        lines = self._lines.get((request.purpose.agent, request.purpose.skill), [])
        if not lines:
            yield Failed(kind="request", why=f"No line for {request.purpose.agent} in {request.purpose.skill}.")
            return
        line = lines.pop(0) if len(lines) > 1 else lines[0]
        if isinstance(line, Failed):
            yield line
            return
        if isinstance(line, Finished):
            yield ModelTextDelta(text="half a")
            yield line
            return
        text = line if isinstance(line, str) else line(request) if callable(line) else ""
        yield ModelTextDelta(text=text)
        yield Usage(input=sum(len(one.content) for one in request.messages) // 4, output=len(text) // 4, money=1)
        yield Finished()


def planner(name: str, *, manager: bool = False, language: str = "", **more: object) -> AgentSpec:
    """Build the spec of a planning agent."""
    usual = AgentSpec(name=name.title(), role="a worker", style="plan", manager=manager, language=language)
    return evolve(evolve(usual, skills=THINKS, tools=("echo",)), **more)


class House:
    """A running team: Boss manages, Ann and Bob work, Kim is a person."""

    def __init__(self, runtime: Runtime, team: TeamId, model: Script) -> None:
        self.runtime, self.team, self.model = runtime, team, model

    async def stage(self, *duties: str, agents: Sequence[AgentId] = (ANN, BOB), in_turn: bool = False) -> str:
        """Run these duties in one stage until the team is idle, and return the task status."""
        parts = tuple(
            SubtaskPlan(name=one, duty=duty, agent=one, needs=tuple(agents[:place]) if in_turn else ())
            for place, (one, duty) in enumerate(zip(agents, duties, strict=False))
        )
        plan = StagePlan(intention="Make it good.", subtasks=parts, on_failure="continue")
        group = (ANN, BOB, KIM)
        task = AddTask(name="Work", intention="Good work.", manager=BOSS, group=group, stages=(plan,), driver="auto")
        await self.runtime.ask(self.team, task)
        return (await self.runtime.wait(self.team, T1)).state

    async def outside(self, *works: Work, agent: AgentId = ANN) -> None:
        """Run these steps of an agent in a task without stages."""
        task = AddTask(name="Talk", intention="Talk.", manager=BOSS, group=(ANN, BOB, KIM), driver="manager")
        if not (await self.state()).tasks:
            await self.runtime.ask(self.team, task)
        await self.runtime.ask(self.team, QueueSteps(agent_id=agent, works=works, task_id=T1))
        await self.runtime.wait(self.team, T1)

    async def state(self) -> TeamState:
        return await self.runtime.state(self.team)

    async def steps(self, agent: AgentId | None = None) -> list[Step]:
        found = [one async for one in self.runtime.archive(self.team, "step") if isinstance(one, Step)]
        return [one for one in found if agent in (None, one.agent_id)]

    async def did(self, agent: AgentId | None = None) -> list[str]:
        """Return the executors in order, with failures marked."""
        return [f"{'!' if one.state == 'failed' else ''}{one.work.executor}" for one in await self.steps(agent)]

    async def notes(self) -> list[str]:
        """Return the notes on the task board."""
        return [one.content async for one in self.runtime.archive(self.team, "note") if isinstance(one, Note)]

    async def messages(self) -> list[Message]:
        return [one async for one in self.runtime.archive(self.team, "message") if isinstance(one, Message)]

    async def ended_stage(self) -> Stage:
        return next(iter([one async for one in self.runtime.archive(self.team, "stage") if isinstance(one, Stage)]))

    async def result(self, skill: str) -> Mapping[str, object]:
        """Return the result of the newest step of a skill."""
        return next(one.result or {} for one in reversed(await self.steps()) if one.work.executor == skill)


@asynccontextmanager
async def house(
    lines: Mapping[tuple[str, str], Sequence[Line]],
    *,
    strict: bool = False,
    specs: Mapping[AgentId, AgentSpec] | None = None,
    executors: Sequence[Executor] = (),
    tools: Sequence[ToolSpec] = (),
    more: Sequence[Skill] = (),
    blueprints: Sequence[AgentSpec] = (),
) -> AsyncIterator[House]:
    """Start a team that plays these lines."""
    model = Script(lines, strict=strict)
    skills = build_planned_skills(model, (ECHO, *tools), reader=TextReader(), extra=more)
    kit = Capabilities([*skills, talks.Echo(), *executors], agent_specs=tuple(blueprints))
    runtime = Runtime(MemoryLog(), capability_factories={"plan": lambda _: kit})
    members: dict[AgentId, AgentSpec] = {
        BOSS: planner("boss", manager=True),
        ANN: planner("ann"),
        BOB: planner("bob"),
        KIM: AgentSpec(name="Kim", kind="human"),
        **(specs or {}),
    }
    try:
        team = await runtime.create("plan", list(members.items()), capabilities_name="plan")
        await runtime.start(team)
        yield House(runtime, team, model)
    finally:
        await runtime.close()


def lines(**told: Sequence[Line]) -> dict[tuple[str, str], Sequence[Line]]:
    """Return Ann's lines by skill. `bob_think` is Bob's, `boss_think` the manager's."""
    found: dict[tuple[str, str], Sequence[Line]] = defaultdict(list)
    for name, one in told.items():
        who, _, skill = name.partition("_")
        found[(who, skill) if who in ("bob", "boss") else ("ann", name)] = one
    return dict(found)
