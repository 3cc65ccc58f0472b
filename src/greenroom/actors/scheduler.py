"""The schedule: which stage starts, which subtask begins, what is over. A function of the world, nothing else.

Run at start on all tasks and after each commit on those that changed: the same answer either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from greenroom.core.base.ids import AgentId, SubtaskId, TaskId, agent_of, task_of, thread_id, waiter_of
from greenroom.core.rules.intents import (
    AssignSubtask,
    FinishStage,
    FinishSubtask,
    FinishTask,
    Intent,
    ReportStage,
    StartStage,
)
from greenroom.core.rules.stages import has_letters
from greenroom.core.state.agent import AgentRemoved
from greenroom.core.state.events import Event
from greenroom.core.state.message import WaitReleased
from greenroom.core.state.stage import (
    Stage,
    StageAdded,
    StageEnded,
    StageStarted,
    Subtask,
    SubtaskEnd,
    SubtaskEnded,
    SubtaskWord,
)
from greenroom.core.state.step import StepEnded
from greenroom.core.state.task import Task, TaskResumed, TaskStarted
from greenroom.core.state.team import TeamResumed
from greenroom.core.state.world import World

OVER = ("finished", "failed", "skipped", "cancelled")


_WITH_PARTS: Final = (TaskStarted, TaskResumed)
_BY_AGENT: Final = (StepEnded, WaitReleased)
_BY_STAGE: Final = (StageAdded, StageStarted, StageEnded, SubtaskEnded)
_ALL: Final = (TeamResumed, AgentRemoved)
_MOVING: Final = frozenset((*_WITH_PARTS, *_BY_AGENT, *_BY_STAGE, *_ALL))


def changed(world: World, events: Iterable[Event]) -> set[TaskId]:
    """The tasks that a commit may have moved."""
    found: set[TaskId] = set()
    for event in events:
        if type(event) not in _MOVING:
            continue
        if isinstance(event, StepEnded):
            found.update(_after_step(world, event))
        elif isinstance(event, WaitReleased):
            # It may have been all that the waiter was doing, in whichever of its tasks.
            found.update((event.task_id, *_tasks_of(world, waiter_of(event.waiting_id))))
        elif isinstance(event, _WITH_PARTS):
            found.update(world.below(event.task_id))
        elif isinstance(event, _BY_STAGE):
            found.add(task_of(event.stage_id))
        else:
            found.update(world.tasks)
    return found


def _after_step(world: World, event: StepEnded) -> Iterable[TaskId]:
    """A step's end moves its task when its thread has no more steps, or when the stage waits for messages only."""
    thread = world.threads.get(event.thread_id)
    if thread is None:
        return _tasks_of(world, agent_of(event.step_id))
    if not thread.open_steps:
        return (thread.task_id,)
    stage = world.active_stage(thread.task_id) if thread.task_id in world.tasks else None
    return (thread.task_id,) if stage is not None and _is_done(stage) else ()


def _tasks_of(world: World, agent: AgentId) -> Iterable[TaskId]:
    known = world.agents.get(agent)
    return {duty.task_id for duty in known.duties} if known is not None else ()


def schedule(world: World, tasks: Iterable[TaskId]) -> list[Intent]:
    """What should happen next in these tasks."""
    found: list[Intent] = []
    for name in tasks:
        task = world.tasks.get(name)
        if task is not None and _runs(world, task):
            found += _next(world, task)
    return found


def _runs(world: World, task: Task) -> bool:
    """Whether neither it, nor what it is a part of, nor the team is paused."""
    return world.team.paused is None and task.runs and all(world.tasks[one].runs for one in world.above(task.task_id))


def _next(world: World, task: Task) -> list[Intent]:
    stage = world.active_stage(task.task_id)
    if stage is not None:
        return _stage(world, task, stage)
    if task.stages:
        return [StartStage(stage_id=task.stages[0])]
    if task.driver == "auto" and task.stages_made:
        if task.failed_stages:
            why = f"{task.failed_stages} stage(s) failed."
            return [FinishTask(task_id=task.task_id, state="failed", summary=why)]
        return [FinishTask(task_id=task.task_id, summary="All stages are finished.")]
    return []


def _stage(world: World, task: Task, stage: Stage) -> list[Intent]:
    found: list[Intent] = []
    states = {subtask.subtask_id: subtask.state for subtask in stage.subtasks}
    for subtask in stage.subtasks:
        if subtask.state not in OVER:
            found += _subtask(world, stage, subtask, states)
    if found or not _is_done(stage) or has_letters(world, stage):
        return found
    failed = any(one.required and one.state in ("failed", "skipped") for one in stage.subtasks)
    if task.driver == "manager" or (failed and stage.on_failure == "escalate"):
        return [] if stage.reported else [ReportStage(stage_id=stage.stage_id)]
    return _over(task, stage, failed)


def _is_done(stage: Stage) -> bool:
    """Whether none of its subtasks is left."""
    return all(one.state in OVER for one in stage.subtasks)


def _over(task: Task, stage: Stage, failed: bool) -> list[Intent]:
    end = FinishStage(stage_id=stage.stage_id, state="failed" if failed else "finished", summary=_summary(stage))
    if failed and stage.on_failure == "stop":
        why = f"Stage {stage.stage_id} failed. {_summary(stage)}"
        return [end, FinishTask(task_id=task.task_id, state="failed", summary=why)]
    if len(task.stages) == 1 and not failed and not task.failed_stages:
        evidence = tuple(proof for one in stage.subtasks for proof in one.evidence)
        return [end, FinishTask(task_id=task.task_id, summary=_summary(stage), evidence=evidence)]
    return [end]


def _summary(stage: Stage) -> str:
    return "\n".join(f"{one.name}: {one.state}. {one.summary}".rstrip() for one in stage.subtasks)


def _subtask(world: World, stage: Stage, subtask: Subtask, states: Mapping[SubtaskId, SubtaskWord]) -> list[Intent]:
    if subtask.state == "init":
        needs = [states[one] for one in subtask.needs]
        if any(state in ("failed", "skipped", "cancelled") for state in needs):
            return [_end(stage, subtask, "skipped", "something it needs was not done")]
        if all(state == "finished" for state in needs):
            return [AssignSubtask(subtask_id=subtask.subtask_id, stage_id=stage.stage_id)]
    if subtask.state == "running" and _stalled(world, subtask):
        return [_end(stage, subtask, "failed", "its agent has no steps left and never said that it was done")]
    return []


def _end(stage: Stage, subtask: Subtask, state: SubtaskEnd, why: str) -> FinishSubtask:
    return FinishSubtask(subtask_id=subtask.subtask_id, stage_id=stage.stage_id, state=state, summary=why)


def _stalled(world: World, subtask: Subtask) -> bool:
    """Nothing will ever happen to it: no step of its thread is left and its agent waits for nobody."""
    agent = world.agents.get(subtask.agent)
    if agent is None:
        return True
    if agent.spec.kind == "human" or agent.step_lock:
        return False
    thread = world.threads.get(thread_id(subtask.agent, subtask.subtask_id))
    return thread is None or thread.open_steps == 0
