"""Stages: the current part of a task. A stage holds subtasks that may depend on each other."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import AgentId, StageId, SubtaskId, TaskId
from greenroom.core.base.records import Data, Record, evolve, record
from greenroom.core.state.work import Work

StageState = Literal["init", "running", "finished", "failed", "cancelled"]
StageEnd = Literal["finished", "failed", "cancelled"]
SubtaskState = Literal["init", "running", "finished", "failed", "skipped", "cancelled"]
SubtaskEnd = Literal["finished", "failed", "skipped", "cancelled"]
MemberState = Literal["idle", "working", "finished", "failed"]
OnFailure = Literal["stop", "continue", "escalate"]


class SubtaskPlan(Record, frozen=True, kw_only=True):
    """A planned subtask. `needs` are names of subtasks in the same stage.

    Of the subtasks that can start, one with a lower `priority` starts first. A failed one is tried again until it had
    `tries` attempts. `seconds` is the expected duration, `writes` the write set: paths or patterns of files. With
    `work` it begins with these steps, and a skill among them gets the briefing. With `anyway` it starts when its needs
    have ended, however they ended; otherwise they must be finished.
    """

    name: str
    duty: str
    agent: AgentId
    needs: tuple[str, ...] = ()
    required: bool = True
    title: str = ""
    priority: int = 0
    tries: int = 1
    seconds: int = 0
    writes: tuple[str, ...] = ()
    work: tuple[Work, ...] = ()
    anyway: bool = False


@record
class StagePlan:
    """A planned stage. At most `concurrency` subtasks run at once; 0 means no limit."""

    intention: str
    subtasks: tuple[SubtaskPlan, ...]
    on_failure: OnFailure = "stop"
    concurrency: int = 0


class Subtask(SubtaskPlan, frozen=True, kw_only=True):
    """One agent's part of a stage: its plan (see `SubtaskPlan`), its state and its result.

    `output` is the typed hand-off to the subtasks that need it: its protocol, version and fields. After a failed
    attempt, `summary` says what failed until the next attempt ends.
    """

    subtask_id: SubtaskId
    needs: tuple[SubtaskId, ...] = ()
    state: SubtaskState = "init"
    summary: str = ""
    evidence: tuple[str, ...] = ()
    attempt: int = 1
    output: Data | None = None
    started_at: int | None = None
    ended_at: int | None = None


@record
class Member:
    """An agent's state within this stage, and its report about its part."""

    agent_id: AgentId
    state: MemberState = "idle"
    completion: str = ""


@record
class Stage:
    """A stage. It refers to agents, never to steps. Ended stages are in the archive.

    `subtasks_made` counts all subtasks that it ever had, so that no id is used twice.
    """

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
    concurrency: int = 0
    subtasks_made: int = 0

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
    concurrency: int = 0


@record
class StageReplanned:
    """A stage got another plan: these are all its subtasks. Those that run or have ended keep their result."""

    at: int
    stage_id: StageId
    subtasks: tuple[Subtask, ...]


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
    output: Data | None = None


@record
class SubtaskRetried:
    """An attempt at a subtask failed, and the subtask waits for its next attempt."""

    at: int
    stage_id: StageId
    subtask_id: SubtaskId
    why: str = ""


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
    | StageReplanned
    | StageReported
    | StageStarted
    | StageEnded
    | SubtaskAssigned
    | SubtaskHandedOver
    | SubtaskEnded
    | SubtaskRetried
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
        concurrency=event.concurrency,
        subtasks_made=len(event.subtasks),
    )


def apply_replan(stage: Stage, event: StageReplanned) -> Stage:
    """Return the stage with its new subtasks and their agents. Members without work or a report leave."""
    known = {subtask.subtask_id for subtask in stage.subtasks}
    agents = dict.fromkeys(subtask.agent for subtask in event.subtasks)
    kept = tuple(member for member in stage.members if member.agent_id in agents or member.state != "idle")
    members = {member.agent_id for member in kept}
    return evolve(
        stage,
        subtasks=event.subtasks,
        members=(*kept, *(Member(agent_id=agent) for agent in agents if agent not in members)),
        reported=False,
        subtasks_made=stage.subtasks_made + sum(subtask.subtask_id not in known for subtask in event.subtasks),
    )


def apply_retry(stage: Stage, event: SubtaskRetried) -> Stage:
    """Return the stage with the subtask waiting for its next attempt."""
    subtask = stage.find_subtask(event.subtask_id)
    attempt = subtask.attempt + 1 if subtask is not None else 1
    return with_subtask(stage, event.subtask_id, state="init", attempt=attempt, summary=event.why)


def apply_subtask_end(stage: Stage, event: SubtaskEnded) -> Stage:
    """Return the stage with the subtask's result."""
    result = {"summary": event.summary, "evidence": event.evidence, "output": event.output}
    return with_subtask(stage, event.subtask_id, state=event.state, ended_at=event.at, **result)


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
