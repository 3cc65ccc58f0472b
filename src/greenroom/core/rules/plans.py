"""Rules for plans: what a stage to be must be, and how it is appended to its task."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, TaskId, stage_id, subtask_id
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, not_manager, unknown
from greenroom.core.rules.intents import AddStages, StagePlan
from greenroom.core.state.stage import StageAdded, Subtask


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
