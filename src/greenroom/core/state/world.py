"""The world: all open work of one team, in persistent maps. A view, a snapshot and a fork are its root pointer."""

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
from greenroom.core.state.agent import Ability, Agent
from greenroom.core.state.approval import Approval, Grant
from greenroom.core.state.budget import Budget
from greenroom.core.state.knowledge import Artifact, Memory, Note, Value
from greenroom.core.state.message import Group, Message, Wait
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.team import Team
from greenroom.core.state.thread import Thread
from greenroom.core.state.timer import Timer

K = TypeVar("K")
N = TypeVar("N", bound=str)
V = TypeVar("V")


@record
class World:
    """What is true now. Ended things are not here: they are in the archive beside the log.

    `version` counts the events it is the fold of, `at` is the time of the last one. `hungry` are the steps that wait
    for room in a budget: an index, so that nobody has to look for them. `releases` are the places to which a person
    lets things go in this run, whatever was read. `letters` are the numbers of what is in the `mail`, among all that
    ever wanted an answer of a person. `notes` are the newest of each open task.
    """

    team: Team
    version: int = 0
    at: int = 0
    blueprints: Map[str, AgentSpec] = Map()
    abilities: Map[str, Ability] = Map()
    agents: Map[AgentId, Agent] = Map()
    retired: Map[AgentId, str] = Map()
    tasks: Map[TaskId, Task] = Map()
    stages: Map[StageId, Stage] = Map()
    threads: Map[ThreadId, Thread] = Map()
    steps: Map[StepId, Step] = Map()
    waits: Map[WaitingId, Wait] = Map()
    mail: Map[MessageId, Message] = Map()
    values: Map[str, Value] = Map()
    budgets: Map[BudgetId, Budget] = Map()
    approvals: Map[ApprovalId, Approval] = Map()
    grants: Map[str, Grant] = Map()
    timers: Map[TimerId, Timer] = Map()
    hungry: Map[StepId, BudgetId] = Map()
    memories: Map[MemoryId, Memory] = Map()
    artifacts: Map[str, Artifact] = Map()
    releases: Map[str, Grant] = Map()
    groups: Map[GroupId, Group] = Map()
    letters: Map[MessageId, int] = Map()
    notes: Map[NoteId, Note] = Map()

    def steps_of(self, agent: AgentId) -> Iterator[Step]:
        """The agent's open steps: the running one first, then the queue in order."""
        owner = self.agents[agent]
        if owner.running is not None:
            yield self.steps[owner.running]
        for step in owner.todo:
            yield self.steps[step]

    def active_stage(self, task: TaskId) -> Stage | None:
        """The one stage of the task that runs."""
        return next((self.stages[one] for one in self.tasks[task].stages if self.stages[one].state == "running"), None)

    def budgets_of(self, task: TaskId, agent: AgentId) -> tuple[BudgetId, ...]:
        """The budgets that a step of this agent in this task counts against."""
        own = agent_budget(agent)
        shared: tuple[BudgetId, ...] = (TEAM_BUDGET, task_budget(task))
        if self.tasks[task].parent is not None:
            shared = (*shared, *map(task_budget, self.above(task)))
        return (*shared, own) if own in self.budgets else shared

    def above(self, task: TaskId) -> tuple[TaskId, ...]:
        """The open tasks that this one is a part of, nearest first."""
        parent = self.tasks[task].parent if task in self.tasks else None
        if parent is None or parent not in self.tasks:
            return ()
        return (parent, *self.above(parent))

    def below(self, task: TaskId) -> tuple[TaskId, ...]:
        """This open task and all open ones that are part of it."""
        found = self.tasks.get(task)
        if found is None:
            return ()
        return (task, *(one for part in found.parts for one in self.below(part)))

    def inventory(self, task: TaskId) -> tuple[Artifact, ...]:
        """The artifacts of an open task, by id."""
        here = artifact_key(task, ArtifactId(""))
        return tuple(self.artifacts[key] for key in sorted(self.artifacts) if key.startswith(here))

    def human(self) -> AgentId | None:
        """The person who is asked when nobody else is named."""
        return min((one.agent_id for one in self.agents.values() if one.spec.kind == "human"), default=None)


NOWHERE: Final = World(team=Team(team_id=TeamId("")))
"""The world before anything happened."""


def value_key(task: TaskId, key: str) -> str:
    """Where a board value of this task stands in the world."""
    return f"{task}/{key}"


def artifact_key(task: TaskId, artifact: ArtifactId) -> str:
    """Where an artifact of this task stands in the world."""
    return f"{task}/{artifact}"


def ordered(table: Map[N, V]) -> list[V]:
    """The rows by key. A map's own order changes from process to process, and the same run must make the same ids."""
    return [table[key] for key in sorted(table)]


def without(table: Map[K, V], key: K) -> Map[K, V]:
    """The map without this key, whether or not it was there."""
    return table.delete(key) if key in table else table
