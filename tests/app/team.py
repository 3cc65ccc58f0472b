"""A small team for tests of the running house: tools that can be held, and plans of one line."""

from __future__ import annotations

import asyncio

from greenroom.core.base.ids import AgentId
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.rules.intents import StagePlan, SubtaskPlan
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Effect, Step, StepType, Terms
from greenroom.core.state.world import World
from greenroom.testing.scripted import Call, Cue, Reply

ANN = AgentId("ann")
BOB = AgentId("bob")


class Held:
    """A tool that runs until it is let go, and knows whether it was cancelled."""

    type: StepType = "tool"
    description: str = "Wait until the test says so."

    def __init__(self, name: str = "held", effect: Effect = "pure") -> None:
        self.name = name
        self._effect = effect
        self.begun = asyncio.Event()
        self.let_go = asyncio.Event()
        self.runs = 0
        self.dead = asyncio.Event()

    def terms(self, _: World, __: Step) -> Terms:
        """As the test wants it."""
        return Terms(effect=self._effect)

    async def run(self, _: Bench) -> Outcome:
        """Wait."""
        self.runs += 1
        self.begun.set()
        try:
            await self.let_go.wait()
        finally:
            self.dead.set()
        return Outcome(result={"output": "let go"})


def spec(name: str, *tools: str) -> AgentSpec:
    """An agent that may use these tools."""
    return AgentSpec(name=name, role="worker", tools=tools)


def stage(*agents: str, on_failure: str = "stop", chain: bool = False) -> StagePlan:
    """A stage with one subtask per agent; with `chain`, each needs the one before it."""
    return StagePlan(
        intention="the stage",
        subtasks=tuple(
            SubtaskPlan(
                name=agent,
                duty=f"{agent}'s part",
                agent=AgentId(agent),
                needs=(agents[index - 1],) if chain and index else (),
            )
            for index, agent in enumerate(agents)
        ),
        on_failure="continue" if on_failure == "continue" else "stop",
    )


def call(tool: str, **arguments: object) -> Call:
    """A tool call."""
    return Call(name=tool, arguments=arguments)


def says(agent: str, turn: int | None, *calls: Call, text: str = "", answering: bool = False) -> Cue:
    """A cue for one turn of an agent."""
    return Cue(agent=agent, turn=turn, answering=answering, reply=Reply(text=text, calls=calls))


def finishes(agent: str, turn: int | None = 1, status: str = "finished") -> Cue:
    """A cue to say that the work is done."""
    return says(agent, turn, call("finish", status=status, summary=f"{agent} is {status}", evidence=["seen"]))
