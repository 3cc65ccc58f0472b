"""Stages: the current part of a task. A stage holds subtasks that may depend on each other."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import AgentId, StageId, SubtaskId, TaskId
from greenroom.core.base.records import evolve, record

StageState = Literal["init", "running", "finished", "failed", "cancelled"]
StageEnd = Literal["finished", "failed", "cancelled"]
SubtaskState = Literal["init", "running", "finished", "failed", "skipped", "cancelled"]
SubtaskEnd = Literal["finished", "failed", "skipped", "cancelled"]
MemberState = Literal["idle", "working", "finished", "failed"]
OnFailure = Literal["stop", "continue", "escalate"]


@record
class Subtask:
    """One agent's part of a stage: its duty, its prerequisites, and its result."""

    subtask_id: SubtaskId
    name: str
    duty: str
    agent: AgentId
    needs: tuple[SubtaskId, ...] = ()
    required: bool = True
    state: SubtaskState = "init"
    summary: str = ""
    evidence: tuple[str, ...] = ()


@record
class Member:
    """An agent's state within this stage, and its report about its part."""

    agent_id: AgentId
    state: MemberState = "idle"
    completion: str = ""


@record
class Stage:
    """A stage. It refers to agents, never to steps. Ended stages are in the archive."""

    stage_id: StageId
    task_id: TaskId
    intention: str
    subtasks: tuple[Subtask, ...]
    members: tuple[Member, ...]
    on_failure: OnFailure = "stop"
    state: StageState = "init"
    reported: bool = False
    started_at: int | None = None
    ended_at: int | None = None
    summary: str = ""

    def find_subtask(self, subtask_id: SubtaskId) -> Subtask | None:
        """Return the subtask with this id, or None."""
        return next((subtask for subtask in self.subtasks if subtask.subtask_id == subtask_id), None)

    def find_member(self, agent: AgentId) -> Member | None:
        """Return the agent's membership in the stage, or None."""
        return next((member for member in self.members if member.agent_id == agent), None)


@record
class StageAdded:
    """A stage was added at the end of the task's plan."""

    at: int
    stage_id: StageId
    task_id: TaskId
    intention: str
    subtasks: tuple[Subtask, ...]
    on_failure: OnFailure = "stop"


@record
class StageStarted:
    """A stage became the task's only active stage."""

    at: int
    stage_id: StageId
    task_id: TaskId


@record
class StageEnded:
    """A stage ended."""

    at: int
    stage_id: StageId
    task_id: TaskId
    state: StageEnd
    summary: str = ""


@record
class SubtaskAssigned:
    """An agent began a subtask."""

    at: int
    stage_id: StageId
    subtask_id: SubtaskId
    agent_id: AgentId


@record
class SubtaskHandedOver:
    """A subtask moved to another agent."""

    at: int
    stage_id: StageId
    subtask_id: SubtaskId
    agent_id: AgentId


@record
class SubtaskEnded:
    """A subtask ended: it was finished, failed, skipped or cancelled."""

    at: int
    stage_id: StageId
    subtask_id: SubtaskId
    state: SubtaskEnd
    summary: str = ""
    evidence: tuple[str, ...] = ()


@record
class MemberChanged:
    """An agent's state in the stage changed."""

    at: int
    stage_id: StageId
    agent_id: AgentId
    state: MemberState


@record
class MemberCompleted:
    """An agent reported how its part of the stage went."""

    at: int
    stage_id: StageId
    agent_id: AgentId
    completion: str


@record
class StageReported:
    """The manager was notified that the stage has no work left."""

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


def create_stage(event: StageAdded) -> Stage:
    """Create the stage. Every agent with a subtask starts as an idle member."""
    agents = dict.fromkeys(subtask.agent for subtask in event.subtasks)
    return Stage(
        stage_id=event.stage_id,
        task_id=event.task_id,
        intention=event.intention,
        subtasks=event.subtasks,
        members=tuple(Member(agent_id=agent) for agent in agents),
        on_failure=event.on_failure,
    )


def with_subtask(stage: Stage, subtask_id: SubtaskId, **changes: object) -> Stage:
    """Return the stage with one subtask changed."""
    return evolve(
        stage,
        subtasks=tuple(
            evolve(subtask, **changes) if subtask.subtask_id == subtask_id else subtask for subtask in stage.subtasks
        ),
    )


def with_member(stage: Stage, agent: AgentId, **changes: object) -> Stage:
    """Return the stage with one member changed or added."""
    members = stage.members if stage.find_member(agent) else (*stage.members, Member(agent_id=agent))
    return evolve(
        stage, members=tuple(evolve(member, **changes) if member.agent_id == agent else member for member in members)
    )


def apply_end(stage: Stage, event: StageEnded) -> Stage:
    """Return the stage in its archived form."""
    return evolve(stage, state=event.state, summary=event.summary, ended_at=event.at)
