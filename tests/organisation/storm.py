"""A storm: very many agents who plan write to each other in many tasks at once, and their model answers at once.

Every message has a serial of its own in its text; whoever reads it says that serial, so that all can be counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from greenroom.abilities.skills.planned.skills import planned
from greenroom.app.kit import Kit
from greenroom.app.reading import TextReader
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Abilities
from greenroom.core.ports.log import Store
from greenroom.core.ports.model import ModelRequest
from greenroom.core.rules.intents import AddTask, StagePlan, SubtaskPlan
from greenroom.core.state.message import Message
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step
from greenroom.testing.scripted import Cue, Reply, ScriptedModel
from tests.organisation.firm import letter, said, step

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


FULL = Size(agents=100, tasks=20, members=10, messages=10)
SMALL = Size(agents=20, tasks=4, members=10, messages=5)


class Storm:
    """What the agents say: all of it follows from who is asked, where, and how often before."""

    def __init__(self, size: Size) -> None:
        self._size = size

    def cues(self) -> Iterator[Cue]:
        """One for each skill."""
        plan = [step("send_message")] * self._size.messages
        summary = {"completion_summary": "done", "state": "finished"}
        yield Cue(skill="planning", reply=said("planning", plan))
        yield Cue(skill="send_message", reply=self._writes)
        yield Cue(skill="send_message", answering=True, reply=_answers)
        yield Cue(skill="process_message", reply=_reads)
        yield Cue(skill="reflection", reply=said("reflection", []))
        yield Cue(skill="summary", reply=said("summary", summary))

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
        return said("send_message", letter(receiver, text, waits=waits, stage=stage))


def _history(request: ModelRequest, thread: str) -> str:
    """The lines of what was done that are messages which it has sent there itself."""
    lines = request.messages[-1].content.splitlines()
    return "\n".join(one for one in lines if '"executor": "send_message"' in one and f"serial={thread}/" in one)


def _answers(request: ModelRequest) -> Reply:
    text = request.messages[-1].content
    found = re.findall(r"from: (\S+)\nserial=(\S+)", text)[-1]
    stage = found[1].partition("@")[2].rpartition(".")[0]
    return said("send_message", letter(found[0], f"serial=re:{found[1]}", stage=stage))


def _reads(request: ModelRequest) -> Reply:
    return said("process_message", f"serial={SERIAL.findall(request.messages[-1].content)[-1]}")


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
