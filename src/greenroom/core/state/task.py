"""Tasks: what somebody wants, who manages it, who takes part."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import AgentId, StageId, StepId, TaskId
from greenroom.core.base.records import evolve, record
from greenroom.core.state.origin import Labels

TaskWord = Literal["init", "running", "cancelling", "finished", "failed", "cancelled"]
EndWord = Literal["finished", "failed", "cancelled"]
Driver = Literal["auto", "manager"]


@record
class Task:
    """An open task. With driver `auto` the schedule moves it on; with `manager` its manager does.

    `stages` are the open ones in order, `parts` the open tasks that are part of it; what ended is in the archive.
    `origins` is what those have read who wrote its goal, its plan, its board or its reports. A `standing` task never
    ends by itself: only a person ends it.
    """

    task_id: TaskId
    name: str
    intention: str
    manager: AgentId
    group: tuple[AgentId, ...]
    driver: Driver = "auto"
    parent: TaskId | None = None
    depth: int = 0
    state: TaskWord = "init"
    ending: EndWord | None = None
    paused: str | None = None
    stages: tuple[StageId, ...] = ()
    parts: tuple[TaskId, ...] = ()
    stages_made: int = 0
    failed_stages: int = 0
    notes_made: int = 0
    uncertain: tuple[StepId, ...] = ()
    evidence: tuple[str, ...] = ()
    summary: str = ""
    created_at: int = 0
    ended_at: int | None = None
    origins: Labels = ()
    standing: bool = False

    @property
    def runs(self) -> bool:
        """Whether its steps may begin."""
        return self.state == "running" and self.paused is None


@record
class TaskCreated:
    """The task and its group exist."""

    at: int
    task_id: TaskId
    name: str
    intention: str
    manager: AgentId
    group: tuple[AgentId, ...]
    driver: Driver
    parent: TaskId | None = None
    depth: int = 0
    standing: bool = False


@record
class TaskStarted:
    """Its stages may run."""

    at: int
    task_id: TaskId


@record
class ParticipantsAdded:
    """More agents belong to the task's group."""

    at: int
    task_id: TaskId
    agents: tuple[AgentId, ...]


@record
class TaskPaused:
    """Nothing new starts in this task. `why` is `limit: …` when a budget stopped it."""

    at: int
    task_id: TaskId
    why: str


@record
class TaskResumed:
    """The task goes on."""

    at: int
    task_id: TaskId


@record
class TaskEnding:
    """The task ends like this as soon as its running effects are dead."""

    at: int
    task_id: TaskId
    state: EndWord
    summary: str
    evidence: tuple[str, ...] = ()


@record
class TaskEnded:
    """The task is over, its group dissolved."""

    at: int
    task_id: TaskId
    state: EndWord
    summary: str
    evidence: tuple[str, ...] = ()


@record
class OriginsShared:
    """Something was written in the task for others to read, by somebody who has read what comes from there."""

    at: int
    task_id: TaskId
    origins: Labels


TaskEvent = (
    TaskCreated | TaskStarted | ParticipantsAdded | TaskPaused | TaskResumed | TaskEnding | TaskEnded | OriginsShared
)


def created(event: TaskCreated) -> Task:
    """The task as it begins."""
    return Task(
        task_id=event.task_id,
        name=event.name,
        intention=event.intention,
        manager=event.manager,
        group=event.group,
        driver=event.driver,
        parent=event.parent,
        depth=event.depth,
        standing=event.standing,
        created_at=event.at,
    )


def ended(task: Task, event: TaskEnded) -> Task:
    """The task as it is kept in the archive."""
    return evolve(
        task,
        state=event.state,
        summary=event.summary,
        evidence=event.evidence,
        ended_at=event.at,
        paused=None,
        stages=(),
    )
