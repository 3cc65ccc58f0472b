"""How a task stands, in one word: what a person wants to know and what an exit code says."""

from __future__ import annotations

from typing import Literal

from greenroom.actors.teamwork.schedule import schedule
from greenroom.core.base.ids import TaskId
from greenroom.core.base.records import record
from greenroom.core.rules.queue import next_step
from greenroom.core.state.world import World

Word = Literal["working", "waiting", "paused", "limit", "idle", "finished", "failed", "cancelled"]


@record
class Standing:
    """`waiting` is for a person, `idle` means that nothing will happen by itself; `why` says more."""

    word: Word
    why: str = ""

    @property
    def settled(self) -> bool:
        """Whether it stays so until somebody outside does something."""
        return self.word != "working"


def standing(world: World, task_id: TaskId) -> Standing | None:
    """How an open task stands; None when it is not open."""
    task = world.tasks.get(task_id)
    if task is None:
        return None
    group = [agent for agent in task.group if agent in world.agents]
    if task.state == "cancelling" or any(
        step.state in ("running", "cancelling") and step.task_id == task_id
        for agent in group
        for step in world.steps_of(agent)
    ):
        return Standing(word="working")
    paused = task.paused or world.team.paused
    if paused is not None:
        return Standing(word="limit" if paused.startswith("limit:") else "paused", why=paused)
    if _moves(world, task_id):
        return Standing(word="working")
    questions = [one.question for one in world.approvals.values() if one.task_id == task_id and one.state == "pending"]
    questions += [one.message for one in world.mail.values() if one.task_id == task_id and one.message not in questions]
    if questions:
        return Standing(word="waiting", why=questions[0])
    return Standing(word="idle", why="nobody has anything to do")


def _moves(world: World, task_id: TaskId) -> bool:
    """Whether something of the task will happen by itself: a step, a timer, or the schedule."""
    task = world.tasks[task_id]
    if any(world.steps[step].task_id == task_id for step in world.hungry):
        return True
    for agent in (world.agents[name] for name in task.group if name in world.agents):
        # A step of another task may be in the way of this one's: it ends, and then it is this one's turn.
        mine = any(world.steps[name].task_id == task_id for name in agent.todo)
        if mine and (agent.running is not None or next_step(world, agent.agent_id) is not None):
            return True
    if any(timer.task_id == task_id for timer in world.timers.values()):
        return True
    return bool(schedule(world, [task_id]))
