"""An organisation in memory whose agents have no model: only people and the runtime act."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.organisation.creation import OrganisationSpec, create_organisation
from greenroom.app.organisation.people import HumanAgent
from greenroom.app.organisation.phrases import BASE_TASK, ORGANISATION_KIT
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, StageId, SubtaskId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities, Executor
from greenroom.core.rules.intents import (
    AddAgent,
    AddTask,
    AssignSubtask,
    SendMessage,
    StagePlan,
    StartStage,
    SubtaskPlan,
)
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepTerms
from greenroom.core.state.team_state import TeamState
from tests.app.team import FakeTool

MANAGER, WU, ANN, BEN = AgentId("manager"), AgentId("wu"), AgentId("ann"), AgentId("ben")
T2, S1 = TaskId("t2"), StageId("t2.s1")


def founders(language: str = "en", people: tuple[str, ...] = ("ann", "ben")) -> OrganisationSpec:
    """Return a manager and these people."""
    boss = AgentSpec(name="manager", role="a manager", style="plan", manager=True, language=language)
    return OrganisationSpec(
        name="tea",
        managers=(boss,),
        people=tuple(
            AgentSpec(name=one, role="a person", kind="human", tools=("read_code",), language=language)
            for one in people
        ),
        limits=Limits(money=5_000_000),
        language=language,
        workspace="",
    )


@dataclass(frozen=True, slots=True)
class Office:
    """The organisation, and two of its people."""

    runtime: Runtime
    team: TeamId
    ann: HumanAgent
    ben: HumanAgent

    async def state(self) -> TeamState:
        """Return the team state."""
        return await self.runtime.state(self.team)

    async def steps(self, agent: AgentId) -> list[Step]:
        """Return the ended steps of an agent."""
        found = [one async for one in self.runtime.archive(self.team, "step")]
        return [one for one in found if isinstance(one, Step) and one.agent_id == agent]

    async def writes(self, receiver: AgentId, text: str, *, need_reply: bool = False, waiting: bool = False) -> None:
        """Send a message from the manager."""
        sent = SendMessage(
            task_id=BASE_TASK,
            receiver=(receiver,),
            message=text,
            need_reply=need_reply or waiting,
            waiting=waiting,
            sender=MANAGER,
        )
        await self.runtime.ask(self.team, sent)

    async def allot(self, *agents: AgentId) -> None:
        """Start a task t2 with a stage t2.s1 in which all of these have something to do."""
        plan = StagePlan(
            intention="Taste it",
            subtasks=tuple(SubtaskPlan(name=one, duty=f"{one} tastes", agent=one) for one in agents),
            on_failure="escalate",
        )
        await self.runtime.ask(
            self.team,
            AddTask(name="Tasting", intention="Know the tea", manager=MANAGER, stages=(plan,), driver="manager"),
            StartStage(stage_id=S1),
            *(AssignSubtask(stage_id=S1, subtask_id=SubtaskId(f"{S1}.{n + 1}")) for n in range(len(agents))),
        )


def asking() -> FakeTool:
    """Return a tool that always needs an approval."""

    def terms(step: Step) -> StepTerms:
        verdict: Literal["allow", "ask"] = "allow" if step.approval is not None else "ask"
        return StepTerms(effect="pure", verdict=verdict, question="May it?", digest="d")

    return FakeTool("asking", terms=terms)


@asynccontextmanager
async def office(language: str = "en", executors: Sequence[Executor] = ()) -> AsyncIterator[Office]:
    """Found an organisation with another agent wu, without running it."""
    runtime = Runtime(
        MemoryLog(),
        capability_factories={ORGANISATION_KIT: lambda _: Capabilities(executors)},
    )
    try:
        team = await create_organisation(runtime, founders(language))
        await runtime.ask(team, AddAgent(agent_id=WU, spec=AgentSpec(name="wu", role="a writer", style="plan")))
        yield Office(runtime, team, HumanAgent(runtime, team, ANN), HumanAgent(runtime, team, BEN))
    finally:
        await runtime.close()
