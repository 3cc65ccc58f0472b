"""A team of one or more in memory whose model plays what a test wants, and what it was asked with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from greenroom.abilities.skills.talking import talking
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.kit import Kit
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import AgentId, StepId, TaskId, TeamId, ThreadId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Abilities, Bench, Executor, Outcome
from greenroom.core.ports.model import (
    Finished,
    Model,
    ModelCard,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCall,
    ToolSpec,
    Usage,
)
from greenroom.core.ports.reading import Reader
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepType, Terms, Work
from greenroom.core.state.world import World

ANN, BOB, T1 = AgentId("ann"), AgentId("bob"), TaskId("t1")
Answer = Sequence[ModelEvent]


def says(text: str) -> Answer:
    """A reply of text."""
    return (TextDelta(text=text), Usage(output=2, money=1), Finished())


def calls(name: str, call_id: str = "c1", **arguments: object) -> Answer:
    """A reply with one call."""
    return (
        ToolCall(call_id=call_id, name=name, arguments=arguments),
        Usage(output=2, money=1),
        Finished(reason="calls"),
    )


def ended_step(number: int, work: Work, **more: object) -> Step:
    """A step of Ann's that is over, with these fields."""
    step = Step(
        step_id=StepId(f"ann#{number}"),
        agent_id=ANN,
        thread_id=ThreadId("ann@t1"),
        task_id=T1,
        stage_id=None,
        subtask_id=None,
        work=work,
        queued_at=0,
        state="finished",
    )
    return evolve(step, **more)


class Played:
    """Answers as `play` says; it knows all it was asked."""

    name = "fake:m"

    def __init__(self, play: Callable[[ModelRequest], Answer], *, window: int = 32_768) -> None:
        self.card = ModelCard(output=1000, window=window)
        self.asked: list[ModelRequest] = []
        self.names: list[str] = []
        self._play = play

    def named(self, name: str) -> Model:
        """Itself, whoever asks."""
        self.names.append(name)
        return self

    def price(self, read: int, written: int) -> int | None:
        """A little."""
        return read + written

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The answer."""
        self.asked.append(request)
        size = sum(len(one.content.encode()) for one in request.messages)
        for event in self._play(request):
            yield evolve(event, input=size // 4) if isinstance(event, Usage) else event


def in_order(*answers: Answer) -> Callable[[ModelRequest], Answer]:
    """One after the other; the last one again and again."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


class Echo:
    """A tool that says what it was given."""

    type: StepType = "tool"
    name: str = "echo"
    description: str = "Says it back."

    def terms(self, _: World, __: Step) -> Terms:
        """Free."""
        return Terms(effect="pure")

    async def run(self, bench: Bench) -> Outcome:
        """Say it."""
        given: Data = bench.step.work.instruction_content or {}
        return Outcome(result={"output": str(given.get("text", ""))})


ECHO = ToolSpec(name="echo", description="Says it back.")


class Team:
    """Agents in memory; Ann has the task."""

    def __init__(self, runtime: Runtime, team: TeamId) -> None:
        self.runtime, self.team = runtime, team

    async def ask(self, text: str = "Well?") -> str:
        """Tell Ann something and wait until nothing more happens; how the task stands then."""
        work = Work(type="skill", executor="converse", text_content=text)
        await self.runtime.ask(self.team, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))
        return (await self.runtime.wait(self.team, T1)).word

    async def steps(self) -> list[Step]:
        """All steps that ended."""
        return [one async for one in self.runtime.archive(self.team, "step") if isinstance(one, Step)]

    async def did(self) -> list[str]:
        """What was done, in order."""
        return [one.work.executor for one in await self.steps()]

    async def summary(self) -> str:
        """What the task ended with."""
        return (await self.runtime.stands(self.team, T1)).why


@asynccontextmanager
async def team(
    model: Played,
    spec: AgentSpec | None = None,
    *,
    others: Sequence[tuple[AgentId, AgentSpec]] = (),
    solo: bool = True,
    reader: Reader | None = None,
    project: str = "",
    tools: Sequence[Executor] = (),
) -> AsyncIterator[Team]:
    """A team of Ann and these others."""
    skills = talking(model, [ECHO], solo=solo, reader=reader, project=project)
    kit = Kit(abilities=Abilities([*skills, Echo(), *tools]))
    runtime = Runtime(MemoryLog(), kits={"test": lambda _: kit})
    ann = spec or AgentSpec(name="Ann", role="assistant", tools=("echo",))
    try:
        name = await runtime.create("test", [(ANN, ann), *others], kit="test")
        await runtime.start(name)
        group = (ANN, *(one for one, _ in others))
        await runtime.ask(name, AddTask(name="t", intention="t", manager=ANN, group=group, driver="manager"))
        yield Team(runtime, name)
    finally:
        await runtime.close()
