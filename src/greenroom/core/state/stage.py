"""Stages: what is worked on now. A stage holds subtasks that may depend on each other."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import AgentId, StageId, SubtaskId, TaskId
from greenroom.core.base.records import evolve, record

StageWord = Literal["init", "running", "finished", "failed", "cancelled"]
StageEnd = Literal["finished", "failed", "cancelled"]
SubtaskWord = Literal["init", "running", "finished", "failed", "skipped", "cancelled"]
SubtaskEnd = Literal["finished", "failed", "skipped", "cancelled"]
MemberWord = Literal["idle", "working", "finished", "failed"]
OnFailure = Literal["stop", "continue", "escalate"]


@record
class Subtask:
    """One agent's piece of a stage: its duty, what must be done before, and how it ended."""

    subtask_id: SubtaskId
    name: str
    duty: str
    agent: AgentId
    needs: tuple[SubtaskId, ...] = ()
    required: bool = True
    state: SubtaskWord = "init"
    summary: str = ""
    evidence: tuple[str, ...] = ()


@record
class Member:
    """How one agent stands in this stage (not in the house), and what it says of its part."""

    agent_id: AgentId
    state: MemberWord = "idle"
    completion: str = ""


@record
class Stage:
    """A stage; it points to agents, never to steps. An ended one is in the archive."""

    stage_id: StageId
    task_id: TaskId
    intention: str
    subtasks: tuple[Subtask, ...]
    members: tuple[Member, ...]
    on_failure: OnFailure = "stop"
    state: StageWord = "init"
    reported: bool = False
    started_at: int | None = None
    ended_at: int | None = None
    summary: str = ""

    def subtask(self, wanted: SubtaskId) -> Subtask | None:
        """The subtask with this id."""
        return next((one for one in self.subtasks if one.subtask_id == wanted), None)

    def member(self, agent: AgentId) -> Member | None:
        """How this agent stands in the stage."""
        return next((one for one in self.members if one.agent_id == agent), None)


@record
class StageAdded:
    """The task has one more stage, at its end."""

    at: int
    stage_id: StageId
    task_id: TaskId
    intention: str
    subtasks: tuple[Subtask, ...]
    on_failure: OnFailure = "stop"


@record
class StageStarted:
    """This is the task's one active stage."""

    at: int
    stage_id: StageId
    task_id: TaskId


@record
class StageEnded:
    """The stage is over."""

    at: int
    stage_id: StageId
    task_id: TaskId
    state: StageEnd
    summary: str = ""


@record
class SubtaskAssigned:
    """Its agent begins with it."""

    at: int
    stage_id: StageId
    subtask_id: SubtaskId
    agent_id: AgentId


@record
class SubtaskHandedOver:
    """Another agent has it now."""

    at: int
    stage_id: StageId
    subtask_id: SubtaskId
    agent_id: AgentId


@record
class SubtaskEnded:
    """It is done, or will never be."""

    at: int
    stage_id: StageId
    subtask_id: SubtaskId
    state: SubtaskEnd
    summary: str = ""
    evidence: tuple[str, ...] = ()


@record
class MemberChanged:
    """An agent stands differently in the stage."""

    at: int
    stage_id: StageId
    agent_id: AgentId
    state: MemberWord


@record
class MemberCompleted:
    """An agent says how its part of the stage went."""

    at: int
    stage_id: StageId
    agent_id: AgentId
    completion: str


@record
class StageReported:
    """The manager was told that the stage has nothing left to do."""

    at: int
    stage_id: StageId


StageEvent = (
    StageAdded
    | StageReported
    | StageStarted
    | StageEnded
    | SubtaskAssigned
    | SubtaskHandedOver
    | SubtaskEnded
    | MemberChanged
    | MemberCompleted
)


def added(event: StageAdded) -> Stage:
    """The stage as it begins: every agent with a subtask is an idle member."""
    agents = dict.fromkeys(subtask.agent for subtask in event.subtasks)
    return Stage(
        stage_id=event.stage_id,
        task_id=event.task_id,
        intention=event.intention,
        subtasks=event.subtasks,
        members=tuple(Member(agent_id=agent) for agent in agents),
        on_failure=event.on_failure,
    )


def with_subtask(stage: Stage, wanted: SubtaskId, **changes: object) -> Stage:
    """The stage with one subtask changed."""
    return evolve(
        stage,
        subtasks=tuple(evolve(one, **changes) if one.subtask_id == wanted else one for one in stage.subtasks),
    )


def with_member(stage: Stage, agent: AgentId, **changes: object) -> Stage:
    """The stage with one member changed, or joined by it."""
    members = stage.members if stage.member(agent) else (*stage.members, Member(agent_id=agent))
    return evolve(stage, members=tuple(evolve(one, **changes) if one.agent_id == agent else one for one in members))


def ended(stage: Stage, event: StageEnded) -> Stage:
    """The stage as it is kept in the archive."""
    return evolve(stage, state=event.state, summary=event.summary, ended_at=event.at)
