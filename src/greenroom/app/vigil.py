"""Waiting for a task: after every commit it is asked whether it still works, so the answer must cost nothing.

While the reason for which it worked is still there, it works; only when that has gone is the whole task looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from greenroom.core.base.ids import AgentId, StepId, TaskId, TimerId
from greenroom.core.rules.queue import next_step
from greenroom.core.state.task import Task
from greenroom.core.state.world import World

Reason: TypeAlias = Callable[[World], bool]
"""Whether a task works, by one thing that made it work. Its no is no answer; its yes is."""


class Vigil:
    """One per waiting caller."""

    def __init__(self, task: TaskId) -> None:
        self._task = task
        self._reason: Reason = never

    def begin(self, world: World) -> None:
        """Find a reason why the task works in this world."""
        self._reason = reason(world, self._task)

    def goes_on(self, world: World) -> bool:
        """Whether it surely works; otherwise look at all of it."""
        return self._reason(world)


def never(_: World) -> bool:
    """No reason."""
    return False


def reason(world: World, task_id: TaskId) -> Reason:
    """Something that makes the task work, and can be asked for again without looking at anything else."""
    return next((one for one in _reasons(world, task_id) if one(world)), never)


def _reasons(world: World, task_id: TaskId) -> Iterator[Reason]:
    """Everything that may be one."""
    task = world.tasks.get(task_id)
    if task is None:
        return
    for agent in task.group:
        yield partial(_at_work, task, agent)
    for timer in world.timers:
        yield partial(_timed, task_id, timer)
    for step in world.hungry:
        yield partial(_hungry, task_id, step)
    for agent in task.group:
        yield partial(_queued, task, agent)


def _at_work(then: Task, agent_id: AgentId, world: World) -> bool:
    """Somebody of the task runs a step of it: a pause does not change that."""
    agent = world.agents.get(agent_id)
    if agent is None or agent.running is None or world.steps[agent.running].task_id != then.task_id:
        return False
    return _belongs(then, agent_id, world)


def _belongs(then: Task, agent_id: AgentId, world: World) -> bool:
    """Whether the task is open and the agent is still one of its group, which seldom changes."""
    task = world.tasks.get(then.task_id)
    return task is not None and (task.group is then.group or agent_id in task.group)


def _queued(then: Task, agent_id: AgentId, world: World) -> bool:
    """Somebody has a step of the task before them, and it can begin, or begins after what runs now."""
    agent = world.agents.get(agent_id)
    if agent is None or not _moves(then.task_id, world) or not _belongs(then, agent_id, world):
        return False
    mine = any(world.steps[name].task_id == then.task_id for name in agent.todo)
    return mine and (agent.running is not None or next_step(world, agent_id) is not None)


def _timed(task_id: TaskId, timer_id: TimerId, world: World) -> bool:
    """Somebody will be woken. That a wait ends some day is no reason: it may be a person who is waited for."""
    timer = world.timers.get(timer_id)
    return timer is not None and timer.task_id == task_id and timer.purpose != "wait" and _moves(task_id, world)


def _hungry(task_id: TaskId, step_id: StepId, world: World) -> bool:
    return step_id in world.hungry and world.steps[step_id].task_id == task_id and _moves(task_id, world)


def _moves(task_id: TaskId, world: World) -> bool:
    task = world.tasks.get(task_id)
    if task is None or task.paused is not None or world.team.paused is not None:
        return False
    return all(world.tasks[one].paused is None for one in world.above(task_id))
