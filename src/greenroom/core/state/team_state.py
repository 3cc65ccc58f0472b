"""The team state: all open work of one team, in persistent maps. A view, a snapshot and a fork are its root pointer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from immutables import Map

from greenroom.core.base.ids import (
    TEAM_BUDGET,
    AgentId,
    ApprovalId,
    ArtifactId,
    BudgetId,
    GroupId,
    MemoryId,
    MessageId,
    NoteId,
    StageId,
    StepId,
    TaskId,
    TeamId,
    ThreadId,
    TimerId,
    WaitingId,
    agent_budget,
    task_budget,
)
from greenroom.core.base.records import record
from greenroom.core.state.agent import AgentState, Capability
from greenroom.core.state.approval import Approval, Grant
from greenroom.core.state.budget import Budget
from greenroom.core.state.knowledge import Artifact, BoardValue, Memory, Note
from greenroom.core.state.message import ConversationGroup, Message, Wait
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Stage, Subtask
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.team import Team
from greenroom.core.state.thread import Thread
from greenroom.core.state.timer import Timer

K = TypeVar("K")
N = TypeVar("N", bound=str)
V = TypeVar("V")


@record
class TeamState:
    """The current state of a team. Ended work is not here but in the archive beside the log.

    `version` is the number of events folded; `at` is the time of the last one. `awaiting_budget` indexes the steps that
    wait for room in a budget. `releases` are destinations to which a person allowed data to go in this run. `mail` has
    the messages that await a person's answer; `letters` are their numbers among all such messages. `notes` are the
    newest of each open task.
    """

    team: Team
    version: int = 0
    at: int = 0
    blueprints: Map[str, AgentSpec] = Map()
    abilities: Map[str, Capability] = Map()
    agents: Map[AgentId, AgentState] = Map()
    retired: Map[AgentId, str] = Map()
    tasks: Map[TaskId, Task] = Map()
    stages: Map[StageId, Stage] = Map()
    threads: Map[ThreadId, Thread] = Map()
    steps: Map[StepId, Step] = Map()
    waits: Map[WaitingId, Wait] = Map()
    mail: Map[MessageId, Message] = Map()
    values: Map[str, BoardValue] = Map()
    budgets: Map[BudgetId, Budget] = Map()
    approvals: Map[ApprovalId, Approval] = Map()
    grants: Map[str, Grant] = Map()
    timers: Map[TimerId, Timer] = Map()
    awaiting_budget: Map[StepId, BudgetId] = Map()
    memories: Map[MemoryId, Memory] = Map()
    artifacts: Map[str, Artifact] = Map()
    releases: Map[str, Grant] = Map()
    groups: Map[GroupId, ConversationGroup] = Map()
    letters: Map[MessageId, int] = Map()
    notes: Map[NoteId, Note] = Map()

    def steps_of(self, agent: AgentId) -> Iterator[Step]:
        """Yield the agent's open steps: the running one first, then the queue in order."""
        owner = self.agents[agent]
        if owner.running is not None:
            yield self.steps[owner.running]
        for step in owner.todo:
            yield self.steps[step]

    def find_active_stage(self, task: TaskId) -> Stage | None:
        """Return the task's running stage, or None."""
        return next(
            (self.stages[name] for name in self.tasks[task].stages if self.stages[name].state == "running"), None
        )

    def find_subtask(self, step: Step) -> Subtask | None:
        """Return the subtask that a step belongs to, or None."""
        stage = self.stages.get(step.stage_id) if step.stage_id is not None else None
        return stage.find_subtask(step.subtask_id) if stage is not None and step.subtask_id is not None else None

    def budgets_of(self, task: TaskId, agent: AgentId) -> tuple[BudgetId, ...]:
        """Return the budgets that a step of this agent in this task counts against."""
        own = agent_budget(agent)
        shared: tuple[BudgetId, ...] = (TEAM_BUDGET, task_budget(task))
        if self.tasks[task].parent is not None:
            shared = (*shared, *map(task_budget, self.list_ancestors(task)))
        return (*shared, own) if own in self.budgets else shared

    def list_ancestors(self, task: TaskId) -> tuple[TaskId, ...]:
        """Return the open tasks that contain this task, nearest first."""
        parent = self.tasks[task].parent if task in self.tasks else None
        if parent is None or parent not in self.tasks:
            return ()
        return (parent, *self.list_ancestors(parent))

    def list_subtree(self, task: TaskId) -> tuple[TaskId, ...]:
        """Return this open task and all open tasks below it."""
        root = self.tasks.get(task)
        if root is None:
            return ()
        return (task, *(name for part in root.parts for name in self.list_subtree(part)))

    def list_artifacts(self, task: TaskId) -> tuple[Artifact, ...]:
        """Return the artifacts of an open task, sorted by id."""
        prefix = artifact_key(task, ArtifactId(""))
        return tuple(self.artifacts[key] for key in sorted(self.artifacts) if key.startswith(prefix))

    def find_human(self) -> AgentId | None:
        """Return the person to ask when no person is named, or None."""
        return min((agent.agent_id for agent in self.agents.values() if agent.spec.kind == "human"), default=None)


EMPTY_STATE: Final = TeamState(team=Team(team_id=TeamId("")))
"""The team state before the first event."""


def value_key(task: TaskId, key: str) -> str:
    """Return the key of a board value in the team state."""
    return f"{task}/{key}"


def artifact_key(task: TaskId, artifact: ArtifactId) -> str:
    """Return the key of an artifact in the team state."""
    return f"{task}/{artifact}"


def sort_rows(table: Map[N, V]) -> list[V]:
    """Return the rows sorted by key. A map's own order differs between processes, and ids must not."""
    return [table[key] for key in sorted(table)]


def remove_key(table: Map[K, V], key: K) -> Map[K, V]:
    """Return the map without this key, if it has it."""
    return table.delete(key) if key in table else table
