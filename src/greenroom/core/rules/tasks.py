"""Rules for tasks: create, start, pause and end them, and plan their stages."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from greenroom.core.base.amounts import UNLIMITED
from greenroom.core.base.errors import Rejection, reject
from greenroom.core.base.ids import (
    TEAM_BUDGET,
    AgentId,
    StageId,
    SubtaskId,
    TaskId,
    stage_id,
    subtask_id,
    task_budget,
    task_id,
)
from greenroom.core.base.records import evolve, to_full_dict
from greenroom.core.rules import limits
from greenroom.core.rules.draft import (
    SYSTEM,
    Draft,
    RuleResult,
    is_manager,
    is_trusted,
    reject_not_manager,
    reject_unknown,
)
from greenroom.core.rules.endings import cancel_steps, end_task_if_done, settle_question, steps_of_task
from greenroom.core.rules.intents import (
    AddStages,
    AddTask,
    CancelTask,
    FinishTask,
    PauseTask,
    Replan,
    ResumeTask,
    StagePlan,
    StartTask,
    SubtaskPlan,
)
from greenroom.core.rules.origins import emit_message, filter_people, notify_participants
from greenroom.core.rules.stages import choose_stage_end, end_stage, find_managed_stage
from greenroom.core.state.stage import Stage, StageAdded, StageReplanned, Subtask
from greenroom.core.state.task import (
    ParticipantsAdded,
    Task,
    TaskCreated,
    TaskEnd,
    TaskEnding,
    TaskPaused,
    TaskResumed,
    TaskStarted,
)


def check_stage_plan(plan: StagePlan, group: tuple[AgentId, ...]) -> RuleResult:
    """Reject a stage without subtasks, with agents outside the group, or with unknown or circular needs."""
    names = [subtask.name for subtask in plan.subtasks]
    if not names:
        return Rejection(
            code="empty_stage", why=f"The stage {plan.intention!r} has no subtasks.", hint="Allot it to an agent."
        )
    if len(set(names)) != len(names):
        return Rejection(code="double_subtask", why=f"Two subtasks have one name: {', '.join(sorted(names))}.")
    for subtask in plan.subtasks:
        if subtask.agent not in group:
            return Rejection(
                code="not_in_group",
                why=f"{subtask.agent!r} is not in the task's group.",
                hint=f"The group: {', '.join(group)}.",
            )
        for need in subtask.needs:
            if need not in names:
                return Rejection(
                    code="unknown_need", why=f"{subtask.name!r} needs {need!r}, which is not in the stage."
                )
    try:
        TopologicalSorter({subtask.name: subtask.needs for subtask in plan.subtasks}).prepare()
    except CycleError as error:
        circle = " → ".join(str(name) for name in error.args[1])
        return Rejection(code="circle", why=f"The subtasks need each other in a circle: {circle}.")
    return None


def append_stage(draft: Draft, task: TaskId, plan: StagePlan) -> None:
    """Append a checked stage."""
    name = stage_id(task, draft.state.tasks[task].stages_made + 1)
    draft.emit(
        StageAdded(
            at=draft.now,
            stage_id=name,
            task_id=task,
            intention=plan.intention,
            subtasks=_build_subtasks(name, plan.subtasks, 0, {}),
            on_failure=plan.on_failure,
            concurrency=plan.concurrency,
        )
    )


def _build_subtasks(
    stage: StageId, plans: tuple[SubtaskPlan, ...], made: int, known: Mapping[str, Subtask]
) -> tuple[Subtask, ...]:
    """Return the subtasks of a checked plan. Known ones keep their id; the stage has `made` ids so far."""
    added = [plan.name for plan in plans if plan.name not in known]
    ids = {name: subtask_id(stage, number) for number, name in enumerate(added, start=made + 1)}
    ids |= {plan.name: known[plan.name].subtask_id for plan in plans if plan.name in known}
    return tuple(_build_subtask(plan, ids, _reopen(plans, known).get(plan.name)) for plan in plans)


def _reopen(plans: tuple[SubtaskPlan, ...], known: Mapping[str, Subtask]) -> Mapping[str, Subtask]:
    """Return the known subtasks. A failed one with more tries than attempts waits again, and so do all skipped ones."""
    failed = [plan.name for plan in plans if plan.name in known and _may_try_again(plan, known[plan.name])]
    again = {name: evolve(known[name], state="init", attempt=known[name].attempt + 1) for name in failed}
    skipped = [name for name, subtask in known.items() if failed and subtask.state == "skipped"]
    return {**known, **again, **{name: evolve(known[name], state="init") for name in skipped}}


def _may_try_again(plan: SubtaskPlan, subtask: Subtask) -> bool:
    return subtask.state == "failed" and plan.tries > subtask.attempt


def _build_subtask(plan: SubtaskPlan, ids: Mapping[str, SubtaskId], known: Subtask | None) -> Subtask:
    """Return a waiting subtask as planned. One that runs or has ended stays as it is."""
    if known is not None and known.state != "init":
        return evolve(known, needs=tuple(need for need in known.needs if need in ids.values()))
    base = known or Subtask(subtask_id=ids[plan.name], name=plan.name, duty=plan.duty, agent=plan.agent)
    changes = {"needs": tuple(ids[need] for need in plan.needs), "tries": max(plan.tries, base.attempt)}
    return evolve(base, **to_full_dict(plan) | changes)


def _check_work(draft: Draft, plans: tuple[SubtaskPlan, ...], known: Mapping[str, Subtask], by: str) -> RuleResult:
    """Reject steps that a model plans for other agents. Steps that the stage has already may stay."""
    for plan in () if is_trusted(draft.state, by) else plans:
        if plan.work and (plan.name not in known or plan.work != known[plan.name].work):
            return Rejection(code="not_yours_to_give", why=f"{by!r} may not plan the steps of {plan.name!r}.")
    return None


def replan(draft: Draft, intent: Replan, by: str) -> RuleResult:
    """Give a stage another plan and add its new agents. What runs or has ended stays, but a failed subtask with more
    tries is tried again."""
    stage = find_managed_stage(draft, intent.stage_id, by, "replan")
    if isinstance(stage, Rejection):
        return stage
    refused = _add_agents(draft, stage, intent, by)
    if refused is not None:
        return refused
    known = {subtask.name: subtask for subtask in stage.subtasks}
    past = tuple(subtask.agent for subtask in stage.subtasks if subtask.state != "init")
    plan = StagePlan(intention=stage.intention, subtasks=intent.subtasks)
    refused = (
        check_stage_plan(plan, (*draft.state.tasks[stage.task_id].group, *past))
        or _check_kept(stage, {planned.name: planned for planned in intent.subtasks})
        or _check_work(draft, intent.subtasks, known, by)
    )
    if refused is not None:
        return refused
    subtasks = _build_subtasks(stage.stage_id, intent.subtasks, stage.subtasks_made, known)
    draft.emit(StageReplanned(at=draft.now, stage_id=stage.stage_id, subtasks=subtasks))
    settle_question(draft, "stage_id", stage.stage_id)
    return None


def _add_agents(draft: Draft, stage: Stage, intent: Replan, by: str) -> RuleResult:
    """Add the plan's new agents to the team and to the task's group."""
    for agent in intent.agents:
        refused = draft.apply(agent, by)
        if refused is not None:
            return refused
    names = tuple(agent.agent_id for agent in intent.agents)
    if names:
        draft.emit(ParticipantsAdded(at=draft.now, task_id=stage.task_id, agents=names))
    return None


def _check_kept(stage: Stage, plans: Mapping[str, SubtaskPlan]) -> RuleResult:
    """Reject a plan without a subtask that runs or has ended, or with another agent or duty for a running one."""
    for subtask in stage.subtasks:
        plan = plans.get(subtask.name)
        if subtask.state != "init" and plan is None:
            why, hint = "Subtask {name!r} has started or ended.", "Keep it in the plan."
            return reject("subtask_left_out", why, hint, name=subtask.name)
        if subtask.state == "running" and plan and (plan.agent, plan.duty) != (subtask.agent, subtask.duty):
            why, hint = "Subtask {name!r} is running: its agent and its goal stay.", "Cancel it, or add another one."
            return reject("subtask_running", why, hint, name=subtask.name)
    return None


def add_stages(draft: Draft, intent: AddStages, by: str) -> RuleResult:
    """Append stages. Only the task's manager plans them."""
    task = draft.state.tasks.get(intent.task_id)
    if task is None or task.state == "cancelling":
        return reject_unknown("task", intent.task_id, tuple(draft.state.tasks))
    if by != task.manager and not is_trusted(draft.state, by):
        return reject_not_manager(by, f"add stages to task {task.task_id!r}")
    for plan in intent.stages:
        refused = check_stage_plan(plan, task.group) or _check_work(draft, plan.subtasks, {}, by)
        if refused is not None:
            return refused
        append_stage(draft, task.task_id, plan)
    return None


def add_task(draft: Draft, intent: AddTask, by: str) -> RuleResult:
    """Create a task. Its group is the manager, the named agents, and all agents of its stages."""
    group = _collect_group(intent)
    refused = _check_task(draft, intent, group, by)
    if refused is not None:
        return refused
    parent, depth = _find_parent(draft)
    if isinstance(depth, Rejection):
        return depth
    name = task_id(draft.state.team.tasks_made + 1)
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
            routing=intent.routing,
        )
    )
    if draft.cause is not None:
        notify_participants(draft, draft.state.tasks[name], group)
    refused = limits.set_budget_limits(draft, task_budget(name), intent.limits) if intent.limits != UNLIMITED else None
    if refused is not None:
        return refused
    for plan in intent.stages:
        append_stage(draft, name, plan)
    if intent.start:
        draft.emit(TaskStarted(at=draft.now, task_id=name))
    return None


def _collect_group(intent: AddTask) -> tuple[AgentId, ...]:
    planned = tuple(subtask.agent for plan in intent.stages for subtask in plan.subtasks)
    return tuple(dict.fromkeys((intent.manager, *intent.group, *planned)))


def _check_task(draft: Draft, intent: AddTask, group: tuple[AgentId, ...], by: str) -> RuleResult:
    if not is_manager(draft.state, by):
        return reject_not_manager(by, "create tasks")
    if (intent.standing or intent.routing is not None) and not is_trusted(draft.state, by):
        return reject_not_manager(by, "create a task that never ends, or that is handed over")
    for agent in group:
        if agent not in draft.state.agents:
            return reject_unknown("agent", agent, tuple(draft.state.agents))
    if not is_trusted(draft.state, by) and filter_people(draft.state, (intent.manager,)):
        why = f"{by!r} may not make {intent.manager!r} manage a task: people say themselves what they manage."
        return Rejection(code="not_yours_to_give", why=why, hint="Manage it yourself, or ask them with a message.")
    for plan in intent.stages:
        refused = check_stage_plan(plan, group) or _check_work(draft, plan.subtasks, {}, by)
        if refused is not None:
            return refused
    return None


def _find_parent(draft: Draft) -> tuple[TaskId | None, int | Rejection]:
    """Return the parent task and the nesting depth, or a rejection if the depth exceeds the limit.

    A task that is ending gets no new children: they belong to the task above it.
    """
    cause, tasks = draft.cause, draft.state.tasks
    candidates = (cause.task_id, *draft.state.list_ancestors(cause.task_id)) if cause is not None else ()
    parent = next((name for name in candidates if name in tasks and tasks[name].ending is None), None)
    depth = tasks[parent].depth + 1 if parent is not None else 0
    limit = draft.state.budgets[TEAM_BUDGET].limits.depth
    if limit is not None and depth > limit:
        why = f"Tasks may be nested {limit} deep."
        return parent, Rejection(code="too_deep", why=why, hint="Do it in the task at hand.")
    return parent, depth


def _find_open_task(draft: Draft, name: TaskId) -> Task | Rejection:
    task = draft.state.tasks.get(name)
    if task is None:
        return reject_unknown("task", name, tuple(draft.state.tasks))
    if task.state == "cancelling":
        return reject("task_ending", "Task {task!r} is ending.", task=name)
    return task


def _find_managed_task(draft: Draft, name: TaskId, by: str, what: str) -> Task | Rejection:
    task = _find_open_task(draft, name)
    if isinstance(task, Rejection):
        return task
    if by != task.manager and not is_trusted(draft.state, by):
        return reject_not_manager(by, f"{what} task {name!r}")
    return task


def start_task(draft: Draft, intent: StartTask, by: str) -> RuleResult:
    """Start a created task, so that its stages run."""
    task = _find_managed_task(draft, intent.task_id, by, "start")
    if isinstance(task, Rejection):
        return task
    if task.state != "init":
        return reject("task_started", "Task {task!r} is {state} already.", task=task.task_id, state=task.state)
    draft.emit(TaskStarted(at=draft.now, task_id=task.task_id))
    return None


def pause_task(draft: Draft, intent: PauseTask, by: str) -> RuleResult:
    """Pause a task. With `now`, stop running steps and queue them again."""
    task = _find_managed_task(draft, intent.task_id, by, "pause")
    if isinstance(task, Rejection):
        return task
    if task.paused is None:
        draft.emit(TaskPaused(at=draft.now, task_id=task.task_id, why=intent.why))
    if intent.now:
        running = [step for step in steps_of_task(draft.state, task.task_id) if step.state == "running"]
        cancel_steps(draft, running, "cancelled", then="requeue")
    return None


def resume_task(draft: Draft, intent: ResumeTask, by: str) -> RuleResult:
    """Resume a paused task. Only a person may: a person or a limit paused it."""
    task = _find_open_task(draft, intent.task_id)
    if isinstance(task, Rejection):
        return task
    if not is_trusted(draft.state, by):
        return Rejection(code="not_a_person", why=f"{by!r} may not resume task {task.task_id!r}: a person must.")
    if task.paused is None:
        return reject("not_paused", "Task {task!r} is not paused.", task=task.task_id)
    draft.emit(TaskResumed(at=draft.now, task_id=task.task_id))
    return None


def finish_task(draft: Draft, intent: FinishTask, by: str) -> RuleResult:
    """End a task as finished or failed and notify its group."""
    task = _find_managed_task(draft, intent.task_id, by, "finish")
    if isinstance(task, Rejection):
        return task
    if task.standing and not is_trusted(draft.state, by):
        return _reject_standing(task)
    if by == SYSTEM and draft.state.find_active_stage(task.task_id) is not None:
        return Rejection(code="stage_active", why=f"A stage of task {task.task_id!r} is not over yet.")
    _notify_group(draft, task, intent.state, intent.summary)
    _begin_ending(draft, task, intent.state, intent.summary, intent.evidence)
    return None


def cancel_task(draft: Draft, intent: CancelTask, by: str) -> RuleResult:
    """End a task as cancelled."""
    task = _find_managed_task(draft, intent.task_id, by, "cancel")
    if isinstance(task, Rejection):
        return task
    if task.standing and not is_trusted(draft.state, by):
        return _reject_standing(task)
    _begin_ending(draft, task, "cancelled", intent.why, ())
    return None


def _reject_standing(task: Task) -> Rejection:
    why = f"Task {task.task_id!r} never ends by itself: only a person ends it."
    return Rejection(code="standing", why=why, hint="Finish the tasks that were made in it.")


def _notify_group(draft: Draft, task: Task, state: Literal["finished", "failed"], summary: str) -> None:
    parent = draft.state.tasks.get(task.parent) if task.parent is not None else None
    people = filter_people(draft.state, parent.group) if parent is not None else ()  # they may have asked for it
    receivers = tuple(dict.fromkeys((*task.group, *people)))
    if receivers == (task.manager,):
        return  # the manager is the only member
    text = summary or f"The task is {state}."
    data = {"instruction": "finish_task", "task_id": task.task_id, "state": state}
    emit_message(draft, task.manager, receivers, text, task=task.task_id, data=data, kind="instruction")


def _begin_ending(draft: Draft, task: Task, state: TaskEnd, summary: str, evidence: tuple[str, ...]) -> None:
    """Cancel queued steps, stop running ones and end the stages. The task ends when all have stopped."""
    draft.emit(TaskEnding(at=draft.now, task_id=task.task_id, state=state, summary=summary, evidence=evidence))
    cancel_steps(draft, steps_of_task(draft.state, task.task_id), "cancelled")
    for child in [draft.state.tasks[name] for name in sorted(task.parts)]:
        if child.ending is None:
            _begin_ending(draft, child, "cancelled", f"task {task.task_id} is over", ())
    for stage in task.stages:
        end_stage(draft, stage, *choose_stage_end(draft.state.stages[stage]))
    end_task_if_done(draft, task.task_id)
