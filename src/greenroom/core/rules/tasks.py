"""Rules for tasks: created, begun, paused and ended; and the stages that are planned for them."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Literal

from greenroom.core.base.amounts import UNLIMITED
from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TaskId, stage_id, subtask_id, task_budget, task_id
from greenroom.core.rules import limits
from greenroom.core.rules.draft import SYSTEM, Draft, Verdict, is_manager, is_trusted, not_manager, unknown
from greenroom.core.rules.endings import cancel_steps, end_task_if_dead, steps_of_task
from greenroom.core.rules.intents import (
    AddStages,
    AddTask,
    CancelTask,
    FinishTask,
    PauseTask,
    ResumeTask,
    StagePlan,
    StartTask,
)
from greenroom.core.rules.origins import people_of, tell, welcome
from greenroom.core.rules.stages import end_stage, left_of
from greenroom.core.state.stage import StageAdded, Subtask
from greenroom.core.state.task import EndWord, Task, TaskCreated, TaskEnding, TaskPaused, TaskResumed, TaskStarted


def check_plan(plan: StagePlan, group: tuple[AgentId, ...]) -> Verdict:
    """A stage has subtasks, each for an agent of the group, with known needs and no circle among them."""
    names = [one.name for one in plan.subtasks]
    if not names:
        return Rejected(
            code="empty_stage", why=f"The stage {plan.intention!r} has no subtasks.", hint="Allot it to an agent."
        )
    if len(set(names)) != len(names):
        return Rejected(code="double_subtask", why=f"Two subtasks have one name: {', '.join(sorted(names))}.")
    for one in plan.subtasks:
        if one.agent not in group:
            return Rejected(
                code="not_in_group",
                why=f"{one.agent!r} is not in the task's group.",
                hint=f"The group: {', '.join(group)}.",
            )
        for need in one.needs:
            if need not in names:
                return Rejected(code="unknown_need", why=f"{one.name!r} needs {need!r}, which is not in the stage.")
    try:
        TopologicalSorter({one.name: one.needs for one in plan.subtasks}).prepare()
    except CycleError as error:
        circle = " → ".join(str(name) for name in error.args[1])
        return Rejected(code="circle", why=f"The subtasks need each other in a circle: {circle}.")
    return None


def put_stage(draft: Draft, task: TaskId, plan: StagePlan) -> None:
    """Append a checked stage."""
    name = stage_id(task, draft.world.tasks[task].stages_made + 1)
    ids = {one.name: subtask_id(name, number) for number, one in enumerate(plan.subtasks, start=1)}
    subtasks = tuple(
        Subtask(
            subtask_id=ids[one.name],
            name=one.name,
            duty=one.duty,
            agent=one.agent,
            needs=tuple(ids[need] for need in one.needs),
            required=one.required,
        )
        for one in plan.subtasks
    )
    draft.emit(
        StageAdded(
            at=draft.now,
            stage_id=name,
            task_id=task,
            intention=plan.intention,
            subtasks=subtasks,
            on_failure=plan.on_failure,
        )
    )


def add_stages(draft: Draft, intent: AddStages, by: str) -> Verdict:
    """Only the task's manager plans its stages."""
    task = draft.world.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return unknown("task", intent.task_id, tuple(draft.world.tasks))
    if by != task.manager and not is_trusted(draft.world, by):
        return not_manager(by, f"add stages to task {task.task_id!r}")
    for plan in intent.stages:
        refused = check_plan(plan, task.group)
        if refused is not None:
            return refused
        put_stage(draft, task.task_id, plan)
    return None


def add_task(draft: Draft, intent: AddTask, by: str) -> Verdict:
    """Create a task; its group is the manager, those named, and everybody its stages need."""
    group = _group(intent)
    refused = _impossible(draft, intent, group, by)
    if refused is not None:
        return refused
    parent, depth = _place(draft)
    if isinstance(depth, Rejected):
        return depth
    name = task_id(draft.world.team.tasks_made + 1)
    draft.emit(
        TaskCreated(
            at=draft.now,
            task_id=name,
            name=intent.name,
            intention=intent.intention,
            manager=intent.manager,
            group=group,
            driver=intent.driver,
            parent=parent,
            depth=depth,
            standing=intent.standing,
        )
    )
    if draft.cause is not None:
        welcome(draft, draft.world.tasks[name], group)
    refused = limits.give(draft, task_budget(name), intent.limits) if intent.limits != UNLIMITED else None
    if refused is not None:
        return refused
    for plan in intent.stages:
        put_stage(draft, name, plan)
    if intent.start:
        draft.emit(TaskStarted(at=draft.now, task_id=name))
    return None


def _group(intent: AddTask) -> tuple[AgentId, ...]:
    planned = tuple(subtask.agent for plan in intent.stages for subtask in plan.subtasks)
    return tuple(dict.fromkeys((intent.manager, *intent.group, *planned)))


def _impossible(draft: Draft, intent: AddTask, group: tuple[AgentId, ...], by: str) -> Verdict:
    if not is_manager(draft.world, by):
        return not_manager(by, "create tasks")
    if intent.standing and not is_trusted(draft.world, by):
        return not_manager(by, "create a task that never ends")
    for agent in group:
        if agent not in draft.world.agents:
            return unknown("agent", agent, tuple(draft.world.agents))
    if not is_trusted(draft.world, by) and people_of(draft.world, (intent.manager,)):
        why = f"{by!r} may not make {intent.manager!r} manage a task: people say themselves what they manage."
        return Rejected(code="not_yours_to_give", why=why, hint="Manage it yourself, or ask them with a message.")
    for plan in intent.stages:
        refused = check_plan(plan, group)
        if refused is not None:
            return refused
    return None


def _place(draft: Draft) -> tuple[TaskId | None, int | Rejected]:
    """The task whose step asks for this one, and how deep that is; tasks may only be nested so far.

    A task that is ending gets no more parts: what is asked for then belongs to the one above it.
    """
    cause, tasks = draft.cause, draft.world.tasks
    places = (cause.task_id, *draft.world.above(cause.task_id)) if cause is not None else ()
    parent = next((one for one in places if one in tasks and tasks[one].ending is None), None)
    depth = tasks[parent].depth + 1 if parent is not None else 0
    limit = draft.world.budgets[TEAM_BUDGET].limits.depth
    if limit is not None and depth > limit:
        why = f"Tasks may be nested {limit} deep."
        return parent, Rejected(code="too_deep", why=why, hint="Do it in the task at hand.")
    return parent, depth


def _open(draft: Draft, name: TaskId) -> Task | Rejected:
    task = draft.world.tasks.get(name)
    if task is None:
        return unknown("task", name, tuple(draft.world.tasks))
    if task.state == "cancelling":
        return Rejected(code="task_ending", why=f"Task {name!r} is ending.")
    return task


def _managed(draft: Draft, name: TaskId, by: str, what: str) -> Task | Rejected:
    task = _open(draft, name)
    if isinstance(task, Rejected):
        return task
    if by != task.manager and not is_trusted(draft.world, by):
        return not_manager(by, f"{what} task {name!r}")
    return task


def start_task(draft: Draft, intent: StartTask, by: str) -> Verdict:
    """Let a created task's stages run."""
    task = _managed(draft, intent.task_id, by, "start")
    if isinstance(task, Rejected):
        return task
    if task.state != "init":
        return Rejected(code="task_started", why=f"Task {task.task_id!r} is {task.state} already.")
    draft.emit(TaskStarted(at=draft.now, task_id=task.task_id))
    return None


def pause_task(draft: Draft, intent: PauseTask, by: str) -> Verdict:
    """Start nothing new; with `now`, end what runs and queue it again."""
    task = _managed(draft, intent.task_id, by, "pause")
    if isinstance(task, Rejected):
        return task
    if task.paused is None:
        draft.emit(TaskPaused(at=draft.now, task_id=task.task_id, why=intent.why))
    if intent.now:
        running = [step for step in steps_of_task(draft.world, task.task_id) if step.state == "running"]
        cancel_steps(draft, running, "cancelled", then="requeue")
    return None


def resume_task(draft: Draft, intent: ResumeTask, by: str) -> Verdict:
    """Only a person lets a paused task go on: the pause may be theirs, or a limit's."""
    task = _open(draft, intent.task_id)
    if isinstance(task, Rejected):
        return task
    if not is_trusted(draft.world, by):
        return Rejected(code="not_a_person", why=f"{by!r} may not resume task {task.task_id!r}: a person must.")
    if task.paused is None:
        return Rejected(code="not_paused", why=f"Task {task.task_id!r} is not paused.")
    draft.emit(TaskResumed(at=draft.now, task_id=task.task_id))
    return None


def finish_task(draft: Draft, intent: FinishTask, by: str) -> Verdict:
    """End a task as finished or failed and tell its group."""
    task = _managed(draft, intent.task_id, by, "finish")
    if isinstance(task, Rejected):
        return task
    if task.standing and not is_trusted(draft.world, by):
        return _stands(task)
    if by == SYSTEM and draft.world.active_stage(task.task_id) is not None:
        return Rejected(code="stage_active", why=f"A stage of task {task.task_id!r} is not over yet.")
    _tell_group(draft, task, intent.state, intent.summary)
    _wind_down(draft, task, intent.state, intent.summary, intent.evidence)
    return None


def cancel_task(draft: Draft, intent: CancelTask, by: str) -> Verdict:
    """End a task as cancelled."""
    task = _managed(draft, intent.task_id, by, "cancel")
    if isinstance(task, Rejected):
        return task
    if task.standing and not is_trusted(draft.world, by):
        return _stands(task)
    _wind_down(draft, task, "cancelled", intent.why, ())
    return None


def _stands(task: Task) -> Rejected:
    why = f"Task {task.task_id!r} never ends by itself: only a person ends it."
    return Rejected(code="standing", why=why, hint="Finish the tasks that were made in it.")


def _tell_group(draft: Draft, task: Task, state: Literal["finished", "failed"], summary: str) -> None:
    told = _heard_by(draft, task)
    if told == (task.manager,):
        return  # nobody else has to be told
    text = summary or f"The task is {state}."
    data = {"instruction": "finish_task", "task_id": task.task_id, "state": state}
    tell(draft, task.manager, told, text, task=task.task_id, data=data, kind="instruction")


def _heard_by(draft: Draft, task: Task) -> tuple[AgentId, ...]:
    """Its group, and the people of the task that it is a part of: one of them may have asked for it."""
    above = draft.world.tasks.get(task.parent) if task.parent is not None else None
    people = people_of(draft.world, above.group) if above is not None else ()
    return tuple(dict.fromkeys((*task.group, *people)))


def _wind_down(draft: Draft, task: Task, state: EndWord, summary: str, evidence: tuple[str, ...]) -> None:
    """Queued steps are not run, running ones are being ended, stages end; the task is over when all are dead."""
    draft.emit(TaskEnding(at=draft.now, task_id=task.task_id, state=state, summary=summary, evidence=evidence))
    cancel_steps(draft, steps_of_task(draft.world, task.task_id), "cancelled")
    for child in [draft.world.tasks[name] for name in sorted(task.parts)]:
        if child.ending is None:
            _wind_down(draft, child, "cancelled", f"task {task.task_id} is over", ())
    for stage in task.stages:
        end_stage(draft, stage, *left_of(draft.world.stages[stage]))
    end_task_if_dead(draft, task.task_id)
