"""A small team for tests of the runtime: tools that can be held, and plans of one line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from greenroom.core.base.ids import AgentId
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.rules.intents import StagePlan, SubtaskPlan
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Effect, Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState
from greenroom.testing.scripted import Cue, ScriptedCall, ScriptedReply

ANN = AgentId("ann")
BOB = AgentId("bob")


class FakeTool:
    """A tool whose effect and terms are functions of the test."""

    type: StepType = "tool"
    description: str = "A tool of a test."

    def __init__(
        self,
        name: str,
        effect: Callable[[StepContext], Outcome] = lambda _: Outcome(result={"output": "done"}),
        terms: Callable[[Step], StepTerms] = lambda _: StepTerms(effect="pure"),
    ) -> None:
        self.name = name
        self.runs = 0
        self._effect = effect
        self._terms = terms

    def terms(self, _: TeamState, step: Step) -> StepTerms:
        """Return the terms that the test wants."""
        return self._terms(step)

    async def run(self, context: StepContext) -> Outcome:
        """Do what the test wants."""
        self.runs += 1
        return self._effect(context)


class Held:
    """A tool that runs until it is released, and records whether it was cancelled."""

    type: StepType = "tool"
    description: str = "Wait until the test says so."

    def __init__(self, name: str = "held", effect: Effect = "pure") -> None:
        self.name = name
        self._effect = effect
        self.begun = asyncio.Event()
        self.let_go = asyncio.Event()
        self.runs = 0
        self.dead = asyncio.Event()

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return the terms that the test wants."""
        return StepTerms(effect=self._effect)

    async def run(self, _: StepContext) -> Outcome:
        """Wait."""
        self.runs += 1
        self.begun.set()
        try:
            await self.let_go.wait()
        finally:
            self.dead.set()
        return Outcome(result={"output": "let go"})


def spec(name: str, *tools: str) -> AgentSpec:
    """Build the spec of an agent with these tools."""
    return AgentSpec(name=name, role="worker", tools=tools)


def stage(*agents: str, on_failure: str = "stop", chain: bool = False) -> StagePlan:
    """Build a stage with one subtask per agent. With `chain`, each depends on the previous."""
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


def call(tool: str, **arguments: object) -> ScriptedCall:
    """Build a tool call."""
    return ScriptedCall(name=tool, arguments=arguments)


def says(agent: str, turn: int | None, *calls: ScriptedCall, text: str = "", answering: bool = False) -> Cue:
    """Build a cue for one turn of an agent."""
    return Cue(agent=agent, turn=turn, answering=answering, reply=ScriptedReply(text=text, calls=calls))


def finishes(agent: str, turn: int | None = 1, status: str = "finished") -> Cue:
    """Build a cue that finishes the work."""
    return says(agent, turn, call("finish", status=status, summary=f"{agent} is {status}", evidence=["seen"]))
