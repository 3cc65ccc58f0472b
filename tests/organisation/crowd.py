"""Organisations for tests, whose models answer at once: a crowd, a storm and a long life.

A crowd is as many agents who plan as a test wants, a manager and a person, whose model says what the test wants. In a
storm very many agents write to each other in many tasks at once: every message has a serial of its own in its text, and
who reads it says that serial, so that all can be counted. In a long life a person writes to a manager again and again;
now and then the manager makes an agent and a task for a wish, which leaves nothing behind that grows.
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

from greenroom.abilities.skills.planned.skills import planned
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.kit import Kit
from greenroom.app.organisation.founders import Founders, found
from greenroom.app.organisation.inbox import at_rest
from greenroom.app.organisation.words import BASE, KIT
from greenroom.app.reading import TextReader
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import UNLIMITED, Limits
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Abilities, Bench, Executor, Outcome
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
from greenroom.core.state.step import Step, StepType, Terms, Work
from greenroom.core.state.world import World
from greenroom.testing.scripted import Cue, Reply, ScriptedModel
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


LEAD = AgentId("lead")
SERIAL = re.compile(r"serial=([\w.@:/>#-]+)")


@dataclass(frozen=True, slots=True)
class Size:
    """How many agents and tasks, how many of them work on a task, and how many messages each of them sends there."""

    agents: int
    tasks: int
    members: int
    messages: int

    @property
    def sent(self) -> int:
        """How many messages are planned."""
        return self.tasks * self.members * self.messages

    @property
    def asked(self) -> int:
        """How many of them somebody waits for, and are answered."""
        return self.tasks * self.members

    def group(self, task: int) -> list[AgentId]:
        """Who works on a task; everybody does on several."""
        first = task * self.agents // self.tasks
        return [AgentId(f"a{(first + one) % self.agents}") for one in range(self.members)]


FULL_STORM = Size(agents=100, tasks=20, members=10, messages=10)
SMALL_STORM = Size(agents=20, tasks=4, members=10, messages=5)


class Storm:
    """What the agents say: all of it follows from who is asked, where, and how often before."""

    def __init__(self, size: Size) -> None:
        self._size = size

    def cues(self) -> Iterator[Cue]:
        """One for each skill."""
        plan = [firm.step("send_message")] * self._size.messages
        summary = {"completion_summary": "done", "state": "finished"}
        yield Cue(skill="planning", reply=firm.said("planning", plan))
        yield Cue(skill="send_message", reply=self._writes)
        yield Cue(skill="send_message", answering=True, reply=_answers)
        yield Cue(skill="process_message", reply=_reads)
        yield Cue(skill="reflection", reply=firm.said("reflection", []))
        yield Cue(skill="summary", reply=firm.said("summary", summary))

    def _writes(self, request: ModelRequest) -> Reply:
        """To the next one of the group, then to the one after that, …; the middle one is waited for."""
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
    """The lines of what was done that are messages which it has sent there itself."""
    lines = request.messages[-1].content.splitlines()
    return "\n".join(one for one in lines if '"executor": "send_message"' in one and f"serial={thread}/" in one)


def _answers(request: ModelRequest) -> Reply:
    text = request.messages[-1].content
    found = re.findall(r"from: (\S+)\nserial=(\S+)", text)[-1]
    stage = found[1].partition("@")[2].rpartition(".")[0]
    return firm.said("send_message", firm.letter(found[0], f"serial=re:{found[1]}", stage=stage))


def _reads(request: ModelRequest) -> Reply:
    return firm.said("process_message", f"serial={SERIAL.findall(request.messages[-1].content)[-1]}")


@dataclass(frozen=True, slots=True)
class Weather:
    """The team in which it blows."""

    runtime: Runtime
    team: TeamId
    size: Size

    async def blow(self) -> list[str]:
        """Begin all tasks at once and wait for all; how they ended."""
        await self.runtime.ask(self.team, *(self._task(one) for one in range(self.size.tasks)))
        return [(await self.runtime.wait(self.team, TaskId(f"t{one + 1}"))).word for one in range(self.size.tasks)]

    def _task(self, number: int) -> AddTask:
        group = self.size.group(number)
        parts = tuple(SubtaskPlan(name=one, duty="write", agent=one) for one in group)
        return AddTask(
            name=f"storm {number}", intention="write", manager=LEAD, stages=(StagePlan(intention="x", subtasks=parts),)
        )

    async def sent(self) -> Counter[tuple[str, str]]:
        """Every serial that was sent, with its receiver. What the house says has none."""
        found = [one async for one in self.runtime.archive(self.team, "message") if isinstance(one, Message)]
        found = [one for one in found if one.kind != "instruction"]
        return Counter((_serial(one.message), to) for one in found for to in one.receiver)

    async def read(self) -> Counter[tuple[str, str]]:
        """Every serial that somebody has said to have read, or has answered."""
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
    """A team of so many agents, with the twelve skills."""
    model = ScriptedModel(Storm(size).cues())
    kit = Kit(abilities=Abilities(planned(model, reader=TextReader())))
    runtime = Runtime(log, kits={"storm": lambda _: kit})
    members = [(LEAD, AgentSpec(name="lead", style="plan", manager=True))]
    members += [
        (AgentId(f"a{one}"), AgentSpec(name=f"a{one}", role="a writer", style="plan")) for one in range(size.agents)
    ]
    try:
        team = await runtime.create("storm", members, kit="storm")
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
