"""A crowd: as many agents who plan as a test wants, a manager and a person, whose model says what the test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from greenroom.abilities.skills.planned.skills import planned
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.kit import Kit
from greenroom.app.reading import TextReader
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import UNLIMITED, Limits
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.ports.executor import Abilities, Bench, Executor, Outcome
from greenroom.core.ports.model import ModelEvent, ModelRequest, ToolSpec
from greenroom.core.rules.intents import (
    AddTask,
    Consequence,
    FinishTask,
    QueueSteps,
    SendMessage,
    StagePlan,
    SubtaskPlan,
)
from greenroom.core.state.message import WaitReleased
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step, StepType, Terms, Work
from greenroom.core.state.world import World
from tests.abilities.skills.planned.planners import BOSS, ECHO, KIM, T1, House, Line, Script, planner
from tests.abilities.skills.talks import Echo


class Patient(Script):
    """A script that can be held for an agent."""

    def __init__(self, lines: Mapping[tuple[str, str], Sequence[Line]]) -> None:
        super().__init__(lines)
        self.held: dict[str, asyncio.Event] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The next line, when the agent is not held any more, whatever it does or in this skill."""
        asked = request.purpose
        for name in (asked.agent, f"{asked.agent}.{asked.skill}"):
            if name in self.held:
                await self.held[name].wait()
        async for event in super().stream(request):
            yield event


class Crowd(House):
    """It runs, and Boss manages it."""

    async def work(self, *duties: Mapping[str, str], group: Sequence[str] = (), wait: bool = True) -> str:
        """A task with a stage for each of these, that Boss decides about; how it stands when nothing more happens."""
        stages = tuple(
            StagePlan(
                intention=f"stage {number}",
                subtasks=tuple(SubtaskPlan(name=who, duty=duty, agent=AgentId(who)) for who, duty in one.items()),
                on_failure="escalate",
            )
            for number, one in enumerate(duties, start=1)
        )
        others = (KIM, *map(AgentId, group))
        task = AddTask(name="Work", intention="Work.", manager=BOSS, group=others, stages=stages, driver="manager")
        await self.runtime.ask(self.team, task)
        return await self.rest() if wait else ""

    async def queue(self, agent: str, *works: Work) -> None:
        """Give somebody steps in the task, outside of every stage."""
        await self.runtime.ask(self.team, QueueSteps(agent_id=AgentId(agent), works=works, task_id=T1))

    async def finish(self) -> None:
        """End the task."""
        await self.runtime.ask(self.team, FinishTask(task_id=T1))

    async def rest(self) -> str:
        """Wait until nothing more happens by itself."""
        return (await self.runtime.wait(self.team, T1)).word

    async def until(self, holds: Callable[[World], bool]) -> None:
        """Wait until this is true."""
        true = asyncio.Event()
        host = await self.runtime.start(self.team)
        stop = host.listen(lambda commit: true.set() if holds(commit.world) else None)
        try:
            if not holds(host.world):
                await asyncio.wait_for(true.wait(), 20)
        finally:
            stop()

    def hold(self, agent: AgentId, skill: str = "") -> asyncio.Event:
        """From now on the model does not answer this agent (in this skill), until the event is set."""
        assert isinstance(self.model, Patient)
        return self.model.held.setdefault(f"{agent}.{skill}" if skill else agent, asyncio.Event())

    async def stages(self) -> list[Stage]:
        """Those that are over, and then those that are not."""
        over = [one async for one in self.runtime.archive(self.team, "stage") if isinstance(one, Stage)]
        return [*over, *(await self.world()).stages.values()]

    async def releases(self) -> list[str]:
        """Why those who waited went on, by what they waited for."""
        events = [told.event async for told in self.runtime.events(self.team)]
        return sorted(f"{one.waiting_id} {one.why}" for one in events if isinstance(one, WaitReleased))

    async def says(self, receiver: AgentId, text: str, *, need_reply: bool = False, waiting: bool = False) -> None:
        """Kim says something."""
        sent = SendMessage(
            task_id=T1,
            receiver=(receiver,),
            message=text,
            need_reply=need_reply or waiting,
            waiting=waiting,
            sender=KIM,
        )
        await self.runtime.ask(self.team, sent)


class Together(Patient):
    """A script in which all who write something unasked have to be about to, before one of them has written it."""

    def __init__(self, lines: Mapping[tuple[str, str], Sequence[Line]], agents: int, *, silent: str = "") -> None:
        super().__init__(lines)
        self._all = asyncio.Barrier(agents)
        self._begun: set[str] = set()
        self._silent = silent

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Wait for the others, once. The silent one never gets to an answer."""
        asked = request.purpose
        if asked.answering and asked.agent == self._silent:
            await asyncio.Event().wait()
        if asked.skill == "send_message" and not asked.answering and asked.agent not in self._begun:
            self._begun.add(asked.agent)
            await self._all.wait()
        async for event in super().stream(request):
            yield event


class Rogue:
    """A skill that asks for whatever a test wants, past everything that skills check: only rules are left."""

    type: StepType = "skill"
    name: str = "quick_think"
    description: str = "Asks for things."

    def __init__(self, *wishes: Consequence) -> None:
        self._wishes = wishes

    def terms(self, _: World, __: Step) -> Terms:
        """Free."""
        return Terms(effect="pure")

    async def run(self, _: Bench) -> Outcome:
        """Ask."""
        wishes, self._wishes = self._wishes, ()
        return Outcome(result={"quick_think": "asked"}, intents=wishes)


@asynccontextmanager
async def crowd(
    lines: Mapping[tuple[str, str], Sequence[Line]],
    *names: str,
    model: Script | None = None,
    specs: Mapping[str, AgentSpec] | None = None,
    executors: Sequence[Executor] = (),
    tools: Sequence[ToolSpec] = (),
    blueprints: Sequence[AgentSpec] = (),
    limits: Limits = UNLIMITED,
    waiting_timeout: int | None = None,
) -> AsyncIterator[Crowd]:
    """A crowd of these names. An executor has the place of a skill of the same name."""
    script = model or Patient(lines)
    own = {one.name for one in executors}
    skills = [one for one in planned(script, (ECHO, *tools), reader=TextReader()) if one.name not in own]
    echo = [] if "echo" in own else [Echo()]
    kit = Kit(abilities=Abilities([*skills, *echo, *executors]), blueprints=tuple(blueprints))
    runtime = Runtime(MemoryLog(), kits={"crowd": lambda _: kit})
    members: dict[AgentId, AgentSpec] = {
        BOSS: planner("boss", manager=True),
        KIM: AgentSpec(name="Kim", kind="human"),
        **{AgentId(one): planner(one) for one in names},
        **{AgentId(one): spec for one, spec in (specs or {}).items()},
    }
    try:
        team: TeamId = await runtime.create(
            "crowd", list(members.items()), kit="crowd", limits=limits, waiting_timeout=waiting_timeout
        )
        await runtime.start(team)
        yield Crowd(runtime, team, script)
    finally:
        await runtime.close()
