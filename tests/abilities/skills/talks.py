"""A team in memory with a scripted model, and the requests that it got."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from greenroom.abilities.skills.conversation_skills import build_conversation_skills
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import AgentId, StepId, TaskId, TeamId, ThreadId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Capabilities, Executor, Outcome, StepContext
from greenroom.core.ports.model import (
    Finished,
    Model,
    ModelCard,
    ModelEvent,
    ModelRequest,
    ModelTextDelta,
    ToolCall,
    ToolSpec,
    Usage,
)
from greenroom.core.ports.reply_reader import ReplyReader
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState

ANN, BOB, T1 = AgentId("ann"), AgentId("bob"), TaskId("t1")
Answer = Sequence[ModelEvent]


def says(text: str) -> Answer:
    return (ModelTextDelta(text=text), Usage(output=2, money=1), Finished())


def calls(name: str, call_id: str = "c1", **arguments: object) -> Answer:
    return (
        ToolCall(call_id=call_id, name=name, arguments=arguments),
        Usage(output=2, money=1),
        Finished(reason="calls"),
    )


def ended_step(number: int, work: Work, **more: object) -> Step:
    """Build an ended step of Ann with these fields."""
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
    """Answers with `play`, and records every request."""

    name = "fake:m"

    def __init__(self, play: Callable[[ModelRequest], Answer], *, window: int = 32_768) -> None:
        self.card = ModelCard(output=1000, window=window)
        self.asked: list[ModelRequest] = []
        self.names: list[str] = []
        self._play = play

    def get_model(self, name: str) -> Model:
        """Return this model for every name."""
        self.names.append(name)
        return self

    def price(self, read: int, written: int) -> int | None:
        return read + written

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.append(request)
        size = sum(len(one.content.encode()) for one in request.messages)
        for event in self._play(request):
            yield evolve(event, input=size // 4) if isinstance(event, Usage) else event


def in_order(*answers: Answer) -> Callable[[ModelRequest], Answer]:
    """Play answers in order. The last answer repeats."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


class Echo:
    """A tool that returns its argument."""

    type: StepType = "tool"
    name: str = "echo"
    description: str = "Says it back."

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        return StepTerms(effect="pure")

    async def run(self, context: StepContext) -> Outcome:
        given: Data = context.step.work.instruction_content or {}
        return Outcome(result={"output": str(given.get("text", ""))})


ECHO = ToolSpec(name="echo", description="Says it back.")


class Team:
    """A team in memory. Ann has the task."""

    def __init__(self, runtime: Runtime, team: TeamId) -> None:
        self.runtime, self.team = runtime, team

    async def ask(self, text: str = "Well?") -> str:
        """Write to Ann, wait until the team is idle, and return the task status."""
        work = Work(type="skill", executor="converse", text_content=text)
        await self.runtime.ask(self.team, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))
        return (await self.runtime.wait(self.team, T1)).state

    async def steps(self) -> list[Step]:
        return [one async for one in self.runtime.archive(self.team, "step") if isinstance(one, Step)]

    async def did(self) -> list[str]:
        """Return the executors in order."""
        return [one.work.executor for one in await self.steps()]

    async def summary(self) -> str:
        return (await self.runtime.status(self.team, T1)).reason


@asynccontextmanager
async def team(
    model: Played,
    spec: AgentSpec | None = None,
    *,
    others: Sequence[tuple[AgentId, AgentSpec]] = (),
    solo: bool = True,
    reader: ReplyReader | None = None,
    project: str = "",
    tools: Sequence[Executor] = (),
) -> AsyncIterator[Team]:
    """Start a team of Ann and these others."""
    skills = build_conversation_skills(model, [ECHO], solo=solo, reader=reader, project=project)
    kit = Capabilities([*skills, Echo(), *tools])
    runtime = Runtime(MemoryLog(), capability_factories={"test": lambda _: kit})
    ann = spec or AgentSpec(name="Ann", role="assistant", tools=("echo",))
    try:
        name = await runtime.create("test", [(ANN, ann), *others], capabilities_name="test")
        await runtime.start(name)
        group = (ANN, *(one for one, _ in others))
        await runtime.ask(name, AddTask(name="t", intention="t", manager=ANN, group=group, driver="manager"))
        yield Team(runtime, name)
    finally:
        await runtime.close()
