"""How a task stands, in one word: what a person wants to know and what an exit code says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from greenroom.actors.scheduler import schedule
from greenroom.core.base.ids import AgentId, TaskId, ThreadId, WaitingId, timer_id
from greenroom.core.base.records import record
from greenroom.core.rules.queue import next_step
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.world import World

Word = Literal["working", "waiting", "paused", "limit", "provider", "idle", "finished", "failed", "cancelled"]
_PAUSES: Final[Mapping[str, Word]] = {"limit": "limit", "provider": "provider"}
"""What a pause is called whose reason begins with this word and a colon."""


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
    paused = _paused(world, task)
    if paused is not None:
        return Standing(word=pause_word(paused), why=paused)
    if _moves(world, task_id) or _helped(world, task):
        return Standing(word="working")
    question = next(_asked_of_people(world, task), None)
    if question is not None:
        return Standing(word="waiting", why=question)
    if any(timer_id(one, "wait") in world.timers for one in _chain(world, task)):
        return Standing(word="working")
    return Standing(word="idle", why="nobody has anything to do")


def ended(task: Task) -> Standing:
    """How a task that is over stands."""
    return Standing(word=task.state if task.state in ("finished", "cancelled") else "failed", why=task.summary)


def pause_word(why: str) -> Word:
    """What a pause for this reason is called."""
    return _PAUSES.get(why.partition(":")[0], "paused")


def _paused(world: World, task: Task) -> str | None:
    """Why nothing starts in it: its own pause, that of a task it is a part of, or the team's."""
    pauses = [task.paused, *(world.tasks[one].paused for one in world.above(task.task_id)), world.team.paused]
    return next((one for one in pauses if one is not None), None)


def _moves(world: World, task_id: TaskId) -> bool:
    """Whether something of the task will happen by itself: a step, a call to wake, or the schedule."""
    task = world.tasks[task_id]
    if any(world.steps[step].task_id == task_id for step in world.hungry):
        return True
    for agent in (world.agents[name] for name in task.group if name in world.agents):
        # A step of another task may be in the way of this one's: it ends, and then it is this one's turn.
        mine = any(world.steps[name].task_id == task_id for name in agent.todo)
        if mine and (agent.running is not None or next_step(world, agent.agent_id) is not None):
            return True
    # That somebody stops waiting some day is no work: see `_asked_of_people`.
    if any(timer.task_id == task_id and timer.purpose not in ("wait", "answer") for timer in world.timers.values()):
        return True
    return bool(schedule(world, [task_id]))


def _helped(world: World, task: Task) -> bool:
    """Whether somebody is on the way to an answer that the task waits for, in whichever task that is."""
    chain = _chain(world, task)
    return any(
        not _asks(world, step) and (world.agents[name].running is not None or next_step(world, name) is not None)
        for name in {world.waits[one].on for one in chain}
        for step in world.steps_of(name)
        if step.answers in chain
    )


def _asks(world: World, step: Step) -> bool:
    """Whether its conversation is held up by a question to a person."""
    mine = (one for one in world.steps_of(step.agent_id) if one.thread_id == step.thread_id)
    return any(one.state == "awaiting_approval" for one in mine)


def _asked_of_people(world: World, task: Task) -> Iterator[str]:
    """What people are asked in the task, and by those whom its agents wait for."""
    chain = _chain(world, task)
    held: set[ThreadId] = {step.thread_id for step in world.steps.values() if step.answers in chain}
    for approval in world.approvals.values():
        if approval.state == "pending":
            step = world.steps[approval.step_id]
            if step.task_id == task.task_id or step.thread_id in held:
                yield approval.question
    letters = {world.waits[one].message_id for one in chain}
    for letter in world.mail.values():
        if letter.task_id == task.task_id or letter.message_id in letters:
            yield letter.message


def _chain(world: World, task: Task) -> set[WaitingId]:
    """The waits that stand between the task and its next step: of its agents, and of those they wait for."""
    found: set[WaitingId] = set()
    todo = [agent for agent in task.group if agent in world.agents and _has_work(world, agent, task)]
    while todo:
        new = [one for one in world.agents[todo.pop()].step_lock if one not in found]
        found.update(new)
        todo += [world.waits[one].on for one in new]
    return found


def _has_work(world: World, agent: AgentId, task: Task) -> bool:
    """Whether the agent has a step, a question or a subtask in the task."""
    if any(step.task_id == task.task_id for step in world.steps_of(agent)):
        return True
    for wait in (world.waits[one] for one in world.agents[agent].step_lock):
        home = world.threads.get(wait.thread_id) if wait.thread_id is not None else None
        if task.task_id in (wait.task_id, home.task_id if home is not None else None):
            return True
    stage = world.active_stage(task.task_id)
    return stage is not None and any(one.agent == agent and one.state == "running" for one in stage.subtasks)
