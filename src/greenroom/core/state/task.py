"""Tasks: a goal, its manager and its group of agents."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import AgentId, StageId, StepId, TaskId
from greenroom.core.base.records import evolve, record
from greenroom.core.state.origin import Labels

TaskExecutionState = Literal["init", "running", "cancelling", "finished", "failed", "cancelled"]
TaskEnd = Literal["finished", "failed", "cancelled"]
Driver = Literal["auto", "manager"]


@record
class Task:
    """An open task. With driver `auto` the scheduler advances it; with `manager` its manager does.

    `stages` are the open stages in order, `parts` the open child tasks; ended ones are in the archive. `origins` labels
    what the authors of its goal, plan, board and reports had read. A `standing` task never ends by itself: only a
    person ends it.
    """

    task_id: TaskId
    name: str
    intention: str
    manager: AgentId
    group: tuple[AgentId, ...]
    driver: Driver = "auto"
    parent: TaskId | None = None
    depth: int = 0
    state: TaskExecutionState = "init"
    ending: TaskEnd | None = None
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
    def is_runnable(self) -> bool:
        """Whether its steps may start."""
        return self.state == "running" and self.paused is None


@record
class TaskCreated:
    """A task and its group were created."""

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
    """A task started: its stages may run."""

    at: int
    task_id: TaskId


@record
class ParticipantsAdded:
    """Agents joined the task's group."""

    at: int
    task_id: TaskId
    agents: tuple[AgentId, ...]


@record
class TaskPaused:
    """A task was paused: nothing new starts in it. `why` is `limit: …` when a budget stopped it."""

    at: int
    task_id: TaskId
    why: str


@record
class TaskResumed:
    """A paused task was resumed."""

    at: int
    task_id: TaskId


@record
class TaskEnding:
    """A task began to end. It ends with this state when its running effects have stopped."""

    at: int
    task_id: TaskId
    state: TaskEnd
    summary: str
    evidence: tuple[str, ...] = ()


@record
class TaskEnded:
    """A task ended and its group was dissolved."""

    at: int
    task_id: TaskId
    state: TaskEnd
    summary: str
    evidence: tuple[str, ...] = ()


@record
class OriginsShared:
    """An agent that had read from these origins wrote text into the task for others."""

    at: int
    task_id: TaskId
    origins: Labels


TaskEvent = (
    TaskCreated | TaskStarted | ParticipantsAdded | TaskPaused | TaskResumed | TaskEnding | TaskEnded | OriginsShared
)


def create_task(event: TaskCreated) -> Task:
    """Create the task from its event."""
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


def apply_end(task: Task, event: TaskEnded) -> Task:
    """Return the task in its archived form."""
    return evolve(
        task,
        state=event.state,
        summary=event.summary,
        evidence=event.evidence,
        ended_at=event.at,
        paused=None,
        stages=(),
    )
