"""Tasks: a goal, its manager and its group of agents."""

from __future__ import annotations

from typing import Final, Literal

from greenroom.core.base.ids import AgentId, StageId, StepId, TaskId
from greenroom.core.base.records import evolve, record
from greenroom.core.state.origin import Labels
from greenroom.core.state.spec import AgentSpec

TaskExecutionState = Literal["init", "running", "cancelling", "finished", "failed", "cancelled"]
TaskEnd = Literal["finished", "failed", "cancelled"]
Driver = Literal["auto", "manager"]


MAX_HOPS: Final = 20
"""How often a routing team may hand its task over."""

HOPS_KEPT: Final = 4
"""How many of the last hand-overs a task remembers: enough to notice that two agents only send it back and forth."""


@record
class Routing:
    """A routing team: its members, of which one at a time works on the task. `main` begins."""

    main: AgentId
    members: tuple[AgentSpec, ...]
    max_hops: int = MAX_HOPS

    def find_member(self, name: AgentId) -> AgentSpec | None:
        """Return the member with this name, or None."""
        return next((member for member in self.members if member.name == name), None)


@record
class Hop:
    """A hand-over of a task. `content` is a digest of the message; `acted`: a tool was used after it."""

    sender: AgentId
    receiver: AgentId
    content: str
    acted: bool = False


@record
class Task:
    """An open task. With driver `auto` the scheduler advances it; with `manager` its manager does.

    `stages` are the open stages in order, `parts` the open child tasks; ended ones are in the archive. `origins` labels
    what the authors of its goal, plan, board and reports had read. A `standing` task never ends by itself: only a
    person ends it. With `routing` its agents hand it over: the `manager` is the one that has it now, `hops` are the
    last hand-overs of `hops_made`.
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
    routing: Routing | None = None
    hops: tuple[Hop, ...] = ()
    hops_made: int = 0

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
    routing: Routing | None = None


@record
class TaskHandedOver:
    """An agent of a routing team handed the task over to another. `content` is a digest of its message."""

    at: int
    task_id: TaskId
    sender_id: AgentId
    agent_id: AgentId
    content: str


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
    TaskCreated
    | TaskStarted
    | TaskHandedOver
    | ParticipantsAdded
    | TaskPaused
    | TaskResumed
    | TaskEnding
    | TaskEnded
    | OriginsShared
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
        routing=event.routing,
        created_at=event.at,
    )


def apply_hand_over(task: Task, event: TaskHandedOver) -> Task:
    """Return the task with its next agent."""
    hop = Hop(sender=event.sender_id, receiver=event.agent_id, content=event.content)
    hops = (*task.hops, hop)[-HOPS_KEPT:]
    return evolve(task, manager=event.agent_id, hops=hops, hops_made=task.hops_made + 1)


def note_tool_use(task: Task) -> Task:
    """Note that a tool was used after the last hand-over."""
    last = task.hops[-1]
    return task if last.acted else evolve(task, hops=(*task.hops[:-1], evolve(last, acted=True)))


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
