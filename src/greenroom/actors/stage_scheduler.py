"""The scheduler: which stage starts, which subtask begins, what ends. A pure function of the team state.

It runs on all tasks at start, and after each commit on the changed ones, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from greenroom.core.base.ids import AgentId, TaskId, agent_of, task_of, thread_id, waiter_of
from greenroom.core.rules.intents import (
    AssignSubtask,
    FinishStage,
    FinishSubtask,
    FinishTask,
    Intent,
    PauseTask,
    ReportStage,
    StartStage,
)
from greenroom.core.rules.stages import (
    OPEN_STATES,
    count_running,
    has_open_messages,
    has_room,
    is_done,
    list_escalated,
    list_failed,
    list_subtask_threads,
    render_failures,
)
from greenroom.core.state.agent import AgentChanged, AgentRemoved
from greenroom.core.state.events import Event
from greenroom.core.state.message import WaitReleased
from greenroom.core.state.stage import (
    Stage,
    StageAdded,
    StageEnded,
    StageReplanned,
    StageStarted,
    Subtask,
    SubtaskEnd,
    SubtaskEnded,
    SubtaskHandedOver,
    SubtaskRetried,
)
from greenroom.core.state.step import StepEnded
from greenroom.core.state.task import Task, TaskResumed, TaskStarted
from greenroom.core.state.team import TeamResumed
from greenroom.core.state.team_state import TeamState

_WITH_PARTS: Final = (TaskStarted, TaskResumed)
_BY_AGENT: Final = (StepEnded, WaitReleased, AgentChanged)
_BY_STAGE: Final = (
    StageAdded,
    StageReplanned,
    StageStarted,
    StageEnded,
    SubtaskEnded,
    SubtaskHandedOver,
    SubtaskRetried,
)
_ALL: Final = (TeamResumed, AgentRemoved)
_MOVING: Final = frozenset((*_WITH_PARTS, *_BY_AGENT, *_BY_STAGE, *_ALL))


def find_changed_tasks(state: TeamState, events: Iterable[Event]) -> set[TaskId]:
    """Return the tasks that a commit may have advanced."""
    tasks: set[TaskId] = set()
    for event in events:
        if type(event) not in _MOVING:
            continue
        if isinstance(event, StepEnded):
            tasks.update(_find_tasks_after_step(state, event))
        elif isinstance(event, WaitReleased):
            # The waiting agent may have had no other work, in any of its tasks.
            tasks.update((event.task_id, *_find_agent_tasks(state, waiter_of(event.waiting_id))))
        elif isinstance(event, AgentChanged):
            tasks.update(_find_agent_tasks(state, event.agent_id))  # the limit of its type may have changed
        elif isinstance(event, _WITH_PARTS):
            tasks.update(state.list_subtree(event.task_id))
        elif isinstance(event, _BY_STAGE):
            tasks.add(task_of(event.stage_id))
        else:
            tasks.update(state.tasks)
    return tasks


def _find_tasks_after_step(state: TeamState, event: StepEnded) -> Iterable[TaskId]:
    """Return the step's task if its thread has no open steps, or if its stage waits only for messages."""
    thread = state.threads.get(event.thread_id)
    if thread is None:
        return _find_agent_tasks(state, agent_of(event.step_id))
    if not thread.open_steps:
        return (thread.task_id,)
    stage = state.find_active_stage(thread.task_id) if thread.task_id in state.tasks else None
    return (thread.task_id,) if stage is not None and is_done(stage) else ()


def _find_agent_tasks(state: TeamState, agent: AgentId) -> Iterable[TaskId]:
    known = state.agents.get(agent)
    return {duty.task_id for duty in known.duties} if known is not None else ()


def schedule(state: TeamState, tasks: Iterable[TaskId]) -> list[Intent]:
    """Return the intents that advance these tasks."""
    intents: list[Intent] = []
    for name in tasks:
        task = state.tasks.get(name)
        if task is not None and _is_runnable(state, task):
            intents += _schedule_task(state, task)
    return intents


def _is_runnable(state: TeamState, task: Task) -> bool:
    """Return whether neither the task, nor a task above it, nor the team is paused."""
    return (
        state.team.paused is None
        and task.is_runnable
        and all(state.tasks[parent].is_runnable for parent in state.list_ancestors(task.task_id))
    )


def _schedule_task(state: TeamState, task: Task) -> list[Intent]:
    stage = state.find_active_stage(task.task_id)
    if stage is not None:
        return _schedule_stage(state, task, stage)
    if task.stages:
        return [StartStage(stage_id=task.stages[0])]
    if task.driver == "auto" and task.stages_made:
        if task.failed_stages:
            why = f"{task.failed_stages} stage(s) failed."
            return [FinishTask(task_id=task.task_id, state="failed", summary=why)]
        return [FinishTask(task_id=task.task_id, summary="All stages are finished.")]
    return []


def _schedule_stage(state: TeamState, task: Task, stage: Stage) -> list[Intent]:
    intents: list[Intent] = []
    ready: list[Subtask] = []
    subtasks = {subtask.subtask_id: subtask for subtask in stage.subtasks}
    stop, escalated = _find_stop_reason(stage), render_failures(list_escalated(stage))
    for subtask in stage.subtasks:
        if subtask.state == "running" and _is_stalled(state, subtask):
            why = "its agent has no steps left and never said that it was done"
            intents.append(_end_subtask(stage, subtask, "failed", why))
        elif subtask.state == "init":
            needs = [subtasks[name] for name in subtask.needs]
            why = stop or ("" if subtask.anyway else render_failures(needs))
            if why:
                intents.append(_end_subtask(stage, subtask, "skipped", why))
            elif all(need.state not in OPEN_STATES for need in needs) and not (escalated and subtask.anyway):
                ready.append(subtask)
    intents += _start_subtasks(state, stage, ready)
    if intents or not is_done(stage) or has_open_messages(state, stage):
        return intents
    if escalated and any(part.state == "init" for part in stage.subtasks):
        return [PauseTask(task_id=task.task_id, why=f"escalated: {escalated}")]
    if task.driver == "manager" or escalated:
        return [] if stage.reported else [ReportStage(stage_id=stage.stage_id)]
    return _end_stage(task, stage, bool(list_failed(stage)))


def _end_stage(task: Task, stage: Stage, failed: bool) -> list[Intent]:
    end = FinishStage(
        stage_id=stage.stage_id, state="failed" if failed else "finished", summary=_summarise_stage(stage)
    )
    if failed and stage.on_failure == "stop":
        why = f"Stage {stage.stage_id} failed. {_summarise_stage(stage)}"
        return [end, FinishTask(task_id=task.task_id, state="failed", summary=why)]
    if len(task.stages) == 1 and not failed and not task.failed_stages:
        evidence = tuple(proof for subtask in stage.subtasks for proof in subtask.evidence)
        return [end, FinishTask(task_id=task.task_id, summary=_summarise_stage(stage), evidence=evidence)]
    return [end]


def _summarise_stage(stage: Stage) -> str:
    return "\n".join(f"{subtask.name}: {subtask.state}. {subtask.summary}".rstrip() for subtask in stage.subtasks)


def _find_stop_reason(stage: Stage) -> str:
    """Return why nothing more starts in the stage: a required subtask failed. Running ones go on to their end."""
    if stage.on_failure != "stop":
        return ""
    return render_failures(subtask for subtask in list_failed(stage) if subtask.state == "failed")


def _start_subtasks(state: TeamState, stage: Stage, ready: list[Subtask]) -> list[Intent]:
    """Start the subtasks for which there is room: those with the lowest priority first, then in the plan's order."""
    intents: list[Intent] = []
    running = count_running(state, stage)
    for subtask in sorted(ready, key=attrgetter("priority")):
        spec = state.agents[subtask.agent].spec
        if has_room(stage, spec, running):
            running[spec.name] += spec.kind != "system"
            intents.append(AssignSubtask(subtask_id=subtask.subtask_id, stage_id=stage.stage_id))
    return intents


def _end_subtask(stage: Stage, subtask: Subtask, state: SubtaskEnd, why: str) -> FinishSubtask:
    return FinishSubtask(subtask_id=subtask.subtask_id, stage_id=stage.stage_id, state=state, summary=why)


def _is_stalled(state: TeamState, subtask: Subtask) -> bool:
    """Return whether the subtask can never advance: its threads have no open steps and its agent waits for no reply."""
    agent = state.agents.get(subtask.agent)
    if agent is None:
        return True
    if agent.spec.kind == "human" or agent.step_lock:
        return False
    thread = state.threads.get(thread_id(subtask.agent, subtask.subtask_id))
    if thread is not None and thread.open_steps:
        return False
    return not any(thread.open_steps for thread in list_subtask_threads(state, subtask))
