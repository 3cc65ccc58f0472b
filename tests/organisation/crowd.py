"""Organisations for tests with models that answer immediately: a crowd, a storm and a long life.

A crowd has any number of planning agents, a manager and a person, with a scripted model. In a storm many agents write
to each other in many concurrent tasks. Every message has a serial in its text, and its reader repeats it, so that all
can be counted. In a long life a person writes to a manager repeatedly. Now and then the manager makes an agent and a
task for a request, which must leave nothing behind that grows.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Final, TypeVar

from greenroom.abilities.skills.planned.skills import build_planned_skills
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.organisation.creation import OrganisationSpec, create_organisation
from greenroom.app.organisation.inbox import summarise_status
from greenroom.app.organisation.phrases import BASE_TASK, ORGANISATION_KIT
from greenroom.app.runtime import Runtime
from greenroom.app.text_reader import TextReader
from greenroom.core.base.amounts import UNLIMITED
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities, Executor, Outcome, StepContext
from greenroom.core.ports.log import Store
from greenroom.core.ports.model import ModelCard, ModelEvent, ModelRequest, ToolSpec
from greenroom.core.rules.intents import (
    AddTask,
    Consequence,
    FinishTask,
    QueueSteps,
    SendMessage,
    StagePlan,
    SubtaskPlan,
)
from greenroom.core.state.message import Message, WaitReleased
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState
from greenroom.testing.scripted import Cue, ScriptedModel, ScriptedReply
from tests.abilities.skills.planned.planners import (
    BOSS,
    DONE,
    ECHO,
    KIM,
    NOTHING_MORE,
    T1,
    House,
    Line,
    Script,
    message,
    planner,
    said,
    step,
)
from tests.abilities.skills.talks import Echo
from tests.organisation import firm


class Patient(Script):
    """A script that can be held for an agent."""

    def __init__(self, lines: Mapping[tuple[str, str], Sequence[Line]]) -> None:
        super().__init__(lines)
        self.held: dict[str, asyncio.Event] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Stream the next line, once the agent is not held, in general or in this skill."""
        asked = request.purpose
        for name in (asked.agent, f"{asked.agent}.{asked.skill}"):
            if name in self.held:
                await self.held[name].wait()
        async for event in super().stream(request):
            yield event


class Crowd(House):
    """A running team that Boss manages."""

    async def work(self, *duties: Mapping[str, str], group: Sequence[str] = (), wait: bool = True) -> str:
        """Run a task with a stage for each of these, managed by Boss. Return the task status when the team is idle."""
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
        """Queue steps of an agent in the task, outside of every stage."""
        await self.runtime.ask(self.team, QueueSteps(agent_id=AgentId(agent), works=works, task_id=T1))

    async def finish(self) -> None:
        """End the task."""
        await self.runtime.ask(self.team, FinishTask(task_id=T1))

    async def rest(self) -> str:
        """Wait until the team is idle."""
        return (await self.runtime.wait(self.team, T1)).state

    async def until(self, holds: Callable[[TeamState], bool]) -> None:
        """Wait until the condition holds."""
        true = asyncio.Event()
        host = await self.runtime.start(self.team)
        stop = host.listen(lambda commit: true.set() if holds(commit.state) else None)
        try:
            if not holds(host.state):
                await asyncio.wait_for(true.wait(), 20)
        finally:
            stop()

    def hold(self, agent: AgentId, skill: str = "") -> asyncio.Event:
        """Hold the model's answers to this agent (in this skill) until the event is set."""
        assert isinstance(self.model, Patient)
        return self.model.held.setdefault(f"{agent}.{skill}" if skill else agent, asyncio.Event())

    async def stages(self) -> list[Stage]:
        """Return the ended stages, then the open ones."""
        over = [one async for one in self.runtime.archive(self.team, "stage") if isinstance(one, Stage)]
        return [*over, *(await self.state()).stages.values()]

    async def releases(self) -> list[str]:
        """Return why waiting agents continued, by wait."""
        events = [told.event async for told in self.runtime.events(self.team)]
        return sorted(f"{one.waiting_id} {one.why}" for one in events if isinstance(one, WaitReleased))

    async def says(self, receiver: AgentId, text: str, *, need_reply: bool = False, waiting: bool = False) -> None:
        """Send a message from Kim."""
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
    """A script in which all agents that write unasked reach that point before the first has written."""

    def __init__(self, lines: Mapping[tuple[str, str], Sequence[Line]], agents: int, *, silent: str = "") -> None:
        super().__init__(lines)
        self._all = asyncio.Barrier(agents)
        self._begun: set[str] = set()
        self._silent = silent

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Wait for the others, once. The silent agent never gets an answer."""
        asked = request.purpose
        if asked.answering and asked.agent == self._silent:
            await asyncio.Event().wait()
        if asked.skill == "send_message" and not asked.answering and asked.agent not in self._begun:
            self._begun.add(asked.agent)
            await self._all.wait()
        async for event in super().stream(request):
            yield event


class Rogue:
    """A skill that emits any intent of a test, without the checks of skills: only the rules decide."""

    type: StepType = "skill"
    name: str = "quick_think"
    description: str = "Asks for things."

    def __init__(self, *wishes: Consequence) -> None:
        self._wishes = wishes

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return free terms."""
        return StepTerms(effect="pure")

    async def run(self, _: StepContext) -> Outcome:
        """Emit the intents."""
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
    waiting_timeout: int | None = None,
) -> AsyncIterator[Crowd]:
    """Start a crowd of these names. An executor replaces the skill of the same name."""
    script = model or Patient(lines)
    own = {one.name for one in executors}
    skills = [one for one in build_planned_skills(script, (ECHO, *tools), reader=TextReader()) if one.name not in own]
    echo = [] if "echo" in own else [Echo()]
    kit = Capabilities([*skills, *echo, *executors])
    runtime = Runtime(MemoryLog(), capability_factories={"crowd": lambda _: kit})
    members: dict[AgentId, AgentSpec] = {
        BOSS: planner("boss", manager=True),
        KIM: AgentSpec(name="Kim", kind="human"),
        **{AgentId(one): planner(one) for one in names},
        **{AgentId(one): spec for one, spec in (specs or {}).items()},
    }
    try:
        team: TeamId = await runtime.create(
            "crowd", list(members.items()), capabilities_name="crowd", waiting_timeout=waiting_timeout
        )
        await runtime.start(team)
        yield Crowd(runtime, team, script)
    finally:
        await runtime.close()


LEAD = AgentId("lead")
SERIAL = re.compile(r"serial=([\w.@:/>#-]+)")


@dataclass(frozen=True, slots=True)
class Size:
    """The number of agents and tasks, of agents per task, and of messages per agent and task."""

    agents: int
    tasks: int
    members: int
    messages: int

    @property
    def sent(self) -> int:
        """Return the number of planned messages."""
        return self.tasks * self.members * self.messages

    @property
    def asked(self) -> int:
        """Return the number of messages with a waiting sender."""
        return self.tasks * self.members

    def group(self, task: int) -> list[AgentId]:
        """Return the agents of a task. Each agent has several tasks."""
        first = task * self.agents // self.tasks
        return [AgentId(f"a{(first + one) % self.agents}") for one in range(self.members)]


FULL_STORM = Size(agents=100, tasks=20, members=10, messages=10)
SMALL_STORM = Size(agents=20, tasks=4, members=10, messages=5)


class Storm:
    """The replies of the agents, determined by agent, place and count."""

    def __init__(self, size: Size) -> None:
        self._size = size

    def cues(self) -> Iterator[Cue]:
        """Yield one cue per skill."""
        plan = [firm.step("send_message")] * self._size.messages
        summary = {"completion_summary": "done", "state": "finished"}
        yield Cue(skill="planning", reply=firm.said("planning", plan))
        yield Cue(skill="send_message", reply=self._writes)
        yield Cue(skill="send_message", answering=True, reply=_answers)
        yield Cue(skill="process_message", reply=_reads)
        yield Cue(skill="reflection", reply=firm.said("reflection", []))
        yield Cue(skill="summary", reply=firm.said("summary", summary))

    def _writes(self, request: ModelRequest) -> ScriptedReply:
        """Write to the next agents of the group in turn. The middle message waits for its answer."""
        asked = request.purpose
        agent, _, place = asked.thread.partition("@")
        group = self._size.group(int(place.partition(".")[0][1:]) - 1)
        done = len(SERIAL.findall(_history(request, asked.thread)))
        receiver = group[(group.index(AgentId(agent)) + 1 + done % (len(group) - 1)) % len(group)]
        waits = done == self._size.messages // 2
        stage = place.rpartition(".")[0]  # the stage waits for what is about it; else the end of the task ends it
        text = f"serial={asked.thread}/{asked.step}"
        return firm.said("send_message", firm.letter(receiver, text, waits=waits, stage=stage))


def _history(request: ModelRequest, thread: str) -> str:
    """Return the history lines of the agent's own sent messages there."""
    lines = request.messages[-1].content.splitlines()
    return "\n".join(one for one in lines if '"executor": "send_message"' in one and f"serial={thread}/" in one)


def _answers(request: ModelRequest) -> ScriptedReply:
    text = request.messages[-1].content
    found = re.findall(r"from: (\S+)\nserial=(\S+)", text)[-1]
    stage = found[1].partition("@")[2].rpartition(".")[0]
    return firm.said("send_message", firm.letter(found[0], f"serial=re:{found[1]}", stage=stage))


def _reads(request: ModelRequest) -> ScriptedReply:
    return firm.said("process_message", f"serial={SERIAL.findall(request.messages[-1].content)[-1]}")


@dataclass(frozen=True, slots=True)
class Weather:
    """The team of a storm."""

    runtime: Runtime
    team: TeamId
    size: Size

    async def blow(self) -> list[str]:
        """Start all tasks together, wait for all, and return how they ended."""
        await self.runtime.ask(self.team, *(self._task(one) for one in range(self.size.tasks)))
        return [(await self.runtime.wait(self.team, TaskId(f"t{one + 1}"))).state for one in range(self.size.tasks)]

    def _task(self, number: int) -> AddTask:
        group = self.size.group(number)
        parts = tuple(SubtaskPlan(name=one, duty="write", agent=one) for one in group)
        return AddTask(
            name=f"storm {number}", intention="write", manager=LEAD, stages=(StagePlan(intention="x", subtasks=parts),)
        )

    async def sent(self) -> Counter[tuple[str, str]]:
        """Count every sent serial by receiver. Greenroom's own messages have none."""
        found = [one async for one in self.runtime.archive(self.team, "message") if isinstance(one, Message)]
        found = [one for one in found if one.kind != "instruction"]
        return Counter((_serial(one.message), to) for one in found for to in one.receiver)

    async def read(self) -> Counter[tuple[str, str]]:
        """Count every serial that its receiver reported as read, or answered."""
        found: Counter[tuple[str, str]] = Counter()
        async for one in self.runtime.archive(self.team, "step"):
            if not isinstance(one, Step) or one.state != "finished":
                continue
            if one.work.executor == "process_message":
                found[_serial(str((one.result or {})["process_message"])), one.agent_id] += 1
            elif one.answers is not None:
                answer = _serial(json.dumps((one.result or {})["send_message"]))
                found[answer.removeprefix("re:"), one.agent_id] += 1
        return found


def _serial(text: str) -> str:
    return str(SERIAL.findall(text)[-1])


@asynccontextmanager
async def storm(log: Store, size: Size) -> AsyncIterator[Weather]:
    """Start a team of this size, with the twelve skills."""
    model = ScriptedModel(Storm(size).cues())
    kit = Capabilities(build_planned_skills(model, reader=TextReader()))
    runtime = Runtime(log, capability_factories={"storm": lambda _: kit})
    members = [(LEAD, AgentSpec(name="lead", style="plan", manager=True))]
    members += [
        (AgentId(f"a{one}"), AgentSpec(name=f"a{one}", role="a writer", style="plan")) for one in range(size.agents)
    ]
    try:
        team = await runtime.create("storm", members, capabilities_name="storm")
        await runtime.start(team)
        yield Weather(runtime, team, size)
    finally:
        await runtime.close()


V = TypeVar("V")
LONG_LIFE: Final = 2000
SHORT_LIFE: Final = 300
WINDOW: Final = 12_000
MANAGER, ANN = AgentId("manager"), AgentId("ann")
EVERY: Final = 15
"""One of this many requests becomes a task with its own agent."""

WISH: Final = "Wish {}: tell me which tea to drink today, and how long it has to stand. " * 2


class Counting(Script):
    """Answers immediately, and records the length and time of each prompt."""

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
        """Stream the line, and record the time."""
        self.at.append(time.process_time())
        async for event in super().stream(request):
            yield event


def _told(request: ModelRequest, pattern: str) -> str:
    """Return the match in the current step's section, not in the history."""
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
    """The measurements: bytes per prompt, CPU seconds per step, and how it ended."""

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
        """Return the second fifth: by then the first compaction is done."""
        return seen[len(seen) // 5 : 2 * len(seen) // 5]

    def later(self, seen: Sequence[V]) -> Sequence[V]:
        """Return the last fifth."""
        return seen[-len(seen) // 5 :]

    @property
    def growth(self) -> float:
        """Return the growth of the median CPU time per step."""
        return median(self.later(self.seconds)) / median(self.early(self.seconds))


async def lasting(messages: int) -> Life:
    """Let Ann and the manager exchange this many messages, one after the other."""
    model = Counting(messages // 2)
    runtime = Runtime(
        MemoryLog(),
        capability_factories={
            ORGANISATION_KIT: lambda _: Capabilities(build_planned_skills(model, reader=TextReader()))
        },
    )
    founders = OrganisationSpec(
        name="tea",
        managers=(AgentSpec(name="manager", style="plan", manager=True, skills=("think",)),),
        people=(AgentSpec(name="ann", kind="human"),),
        limits=UNLIMITED,
        language="en",
        workspace="",
    )
    try:
        team = await create_organisation(runtime, founders)
        await runtime.start(team)
        for number in range(messages // 2):
            wish = SendMessage(
                task_id=BASE_TASK,
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
        life.tasks, life.agents = len(await runtime.ended_tasks(team)), len((await runtime.state(team)).agents) - 2
    finally:
        await runtime.close()
    return life


async def _rested(runtime: Runtime, team: TeamId) -> None:
    """Wait until all tasks are idle."""
    while not summarise_status(await runtime.state(team)).is_settled:
        for task in tuple((await runtime.state(team)).tasks):
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
    """Return whether the request is a step of the manager's work. Compaction reads only what it summarises."""
    return request.purpose.agent == MANAGER and request.purpose.skill != "compact"
