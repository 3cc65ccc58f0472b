"""How team, task, stage and board events change the world."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from immutables import Map

from greenroom.core.base.ids import TEAM_BUDGET, AgentId, ArtifactId, GroupId, NoteId, StageId, TaskId, task_budget
from greenroom.core.base.records import evolve
from greenroom.core.state import agent as agents
from greenroom.core.state import stage as stages
from greenroom.core.state import step as steps
from greenroom.core.state import task as tasks
from greenroom.core.state import team as teams
from greenroom.core.state.agent import Agent, Duty
from greenroom.core.state.budget import Budget
from greenroom.core.state.group import Group
from greenroom.core.state.note import Note, NotePosted, ValueSet, pool, shown
from greenroom.core.state.origin import merged
from greenroom.core.state.stage import Stage
from greenroom.core.state.task import Task
from greenroom.core.state.world import World, artifact_key, value_key, without

V = TypeVar("V")


def with_task(world: World, task: Task) -> World:
    """The world with this version of a task."""
    return evolve(world, tasks=world.tasks.set(task.task_id, task))


def with_stage(world: World, stage: Stage) -> World:
    """The world with this version of a stage."""
    return evolve(world, stages=world.stages.set(stage.stage_id, stage))


def _team_created(world: World, event: teams.TeamCreated) -> World:
    team = teams.Team(
        team_id=event.team_id,
        name=event.name,
        created_at=event.at,
        kit=event.kit,
        workspace=event.workspace,
        waiting_timeout=event.waiting_timeout,
    )
    budgets = world.budgets.set(TEAM_BUDGET, Budget(budget_id=TEAM_BUDGET))
    return evolve(world, team=team, budgets=budgets)


def _team_forked(world: World, event: teams.TeamForked) -> World:
    found = {name: steps.forked(step) for name, step in world.steps.items() if step.prepared}
    team = evolve(world.team, team_id=event.team_id, origin=event.origin, epoch=0)
    return evolve(world, team=team, steps=world.steps.update(found), grants=Map(), releases=Map())


def _owner_changed(world: World, event: teams.OwnerChanged) -> World:
    return evolve(world, team=evolve(world.team, epoch=event.epoch))


def _team_paused(world: World, event: teams.TeamPaused) -> World:
    return evolve(world, team=evolve(world.team, paused=event.why))


def _team_resumed(world: World, _: teams.TeamResumed) -> World:
    return evolve(world, team=evolve(world.team, paused=None))


def _origins_shared(world: World, event: tasks.OriginsShared) -> World:
    task = world.tasks[event.task_id]
    return with_task(world, evolve(task, origins=merged(task.origins, event.origins)))


def _task_created(world: World, event: tasks.TaskCreated) -> World:
    budget = task_budget(event.task_id)
    above = world.tasks.get(event.parent) if event.parent is not None else None
    if above is not None:
        world = with_task(world, evolve(above, parts=(*above.parts, event.task_id)))
    return evolve(
        world,
        team=evolve(world.team, tasks_made=world.team.tasks_made + 1),
        tasks=world.tasks.set(event.task_id, tasks.created(event)),
        budgets=world.budgets.set(budget, Budget(budget_id=budget)),
        agents=_with_duty(world.agents, event.group, Duty(task_id=event.task_id, stage_id=None)),
    )


def _with_duty(table: Map[AgentId, Agent], names: tuple[AgentId, ...], duty: Duty) -> Map[AgentId, Agent]:
    for name in names:
        table = table.set(name, agents.with_duty(table[name], duty))
    return table


def _task_started(world: World, event: tasks.TaskStarted) -> World:
    return with_task(world, evolve(world.tasks[event.task_id], state="running"))


def _participants_added(world: World, event: tasks.ParticipantsAdded) -> World:
    task = world.tasks[event.task_id]
    world = with_task(world, evolve(task, group=tuple(dict.fromkeys((*task.group, *event.agents)))))
    duty = Duty(task_id=event.task_id, stage_id=None)
    return evolve(world, agents=_with_duty(world.agents, event.agents, duty))


def _task_paused(world: World, event: tasks.TaskPaused) -> World:
    return with_task(world, evolve(world.tasks[event.task_id], paused=event.why))


def _task_resumed(world: World, event: tasks.TaskResumed) -> World:
    return with_task(world, evolve(world.tasks[event.task_id], paused=None))


def _task_ending(world: World, event: tasks.TaskEnding) -> World:
    task = world.tasks[event.task_id]
    return with_task(
        world,
        evolve(task, state="cancelling", ending=event.state, summary=event.summary, evidence=event.evidence),
    )


def _task_ended(world: World, event: tasks.TaskEnded) -> World:
    task = world.tasks[event.task_id]
    above = world.tasks.get(task.parent) if task.parent is not None else None
    if above is not None:
        world = with_task(world, evolve(above, parts=tuple(one for one in above.parts if one != event.task_id)))
    return evolve(
        world,
        tasks=world.tasks.delete(event.task_id),
        budgets=without(world.budgets, task_budget(event.task_id)),
        agents=_released(world, task.group, event.task_id, None),
        values=_off_the_board(world.values, value_key(task.task_id, "")),
        artifacts=_off_the_board(world.artifacts, artifact_key(task.task_id, ArtifactId(""))),
        groups=_dissolved(world.groups, event.task_id),
        notes=_unpinned(world.notes, pool(task.task_id, task.notes_made)),
    )


def _off_the_board(table: Map[str, V], prefix: str) -> Map[str, V]:
    for key in [key for key in table if key.startswith(prefix)]:
        table = table.delete(key)
    return table


def _dissolved(table: Map[GroupId, Group], task: TaskId) -> Map[GroupId, Group]:
    for one in [one for one in table.values() if one.task_id == task]:
        table = table.delete(one.group_id)
    return table


def _released(world: World, names: tuple[AgentId, ...], task: TaskId, stage: StageId | None) -> Map[AgentId, Agent]:
    table = world.agents
    for name in names:
        table = table.set(name, agents.without_duties(table[name], task, stage))
    return table


def _stage_added(world: World, event: stages.StageAdded) -> World:
    task = world.tasks[event.task_id]
    task = evolve(task, stages=(*task.stages, event.stage_id), stages_made=task.stages_made + 1)
    return with_stage(with_task(world, task), stages.added(event))


def _stage_started(world: World, event: stages.StageStarted) -> World:
    stage = evolve(world.stages[event.stage_id], state="running", started_at=event.at)
    duty = Duty(task_id=event.task_id, stage_id=event.stage_id)
    names = tuple(member.agent_id for member in stage.members)
    return evolve(with_stage(world, stage), agents=_with_duty(world.agents, names, duty))


def _stage_ended(world: World, event: stages.StageEnded) -> World:
    task = world.tasks[event.task_id]
    task = evolve(
        task,
        stages=tuple(one for one in task.stages if one != event.stage_id),
        failed_stages=task.failed_stages + (event.state == "failed"),
    )
    return evolve(
        world,
        stages=world.stages.delete(event.stage_id),
        tasks=world.tasks.set(event.task_id, task),
        agents=_released(world, task.group, event.task_id, event.stage_id),
    )


def _stage_reported(world: World, event: stages.StageReported) -> World:
    return with_stage(world, evolve(world.stages[event.stage_id], reported=True))


def _subtask_assigned(world: World, event: stages.SubtaskAssigned) -> World:
    stage = stages.with_subtask(world.stages[event.stage_id], event.subtask_id, state="running")
    return with_stage(world, stages.with_member(stage, event.agent_id, state="working"))


def _subtask_handed_over(world: World, event: stages.SubtaskHandedOver) -> World:
    stage = stages.with_subtask(world.stages[event.stage_id], event.subtask_id, agent=event.agent_id)
    world = with_stage(world, stages.with_member(stage, event.agent_id, state="working"))
    duty = Duty(task_id=stage.task_id, stage_id=stage.stage_id)
    return evolve(world, agents=_with_duty(world.agents, (event.agent_id,), duty))


def _subtask_ended(world: World, event: stages.SubtaskEnded) -> World:
    return with_stage(
        world,
        stages.with_subtask(
            world.stages[event.stage_id],
            event.subtask_id,
            state=event.state,
            summary=event.summary,
            evidence=event.evidence,
        ),
    )


def _member_changed(world: World, event: stages.MemberChanged) -> World:
    return with_stage(world, stages.with_member(world.stages[event.stage_id], event.agent_id, state=event.state))


def _member_completed(world: World, event: stages.MemberCompleted) -> World:
    return with_stage(
        world, stages.with_member(world.stages[event.stage_id], event.agent_id, completion=event.completion)
    )


def _note_posted(world: World, event: NotePosted) -> World:
    task = world.tasks[event.note.task_id]
    notes = world.notes.set(event.note.note_id, shown(event.note))
    old = set(pool(task.task_id, task.notes_made)).difference(pool(task.task_id, task.notes_made + 1))
    return with_task(evolve(world, notes=_unpinned(notes, old)), evolve(task, notes_made=task.notes_made + 1))


def _unpinned(notes: Map[NoteId, Note], names: Iterable[NoteId]) -> Map[NoteId, Note]:
    for name in names:
        notes = without(notes, name)
    return notes


def _value_set(world: World, event: ValueSet) -> World:
    key = value_key(event.value.task_id, event.value.key)
    return evolve(world, values=world.values.set(key, event.value))


FOLDS: Final[dict[type, Callable[[World, Any], World]]] = {
    teams.TeamCreated: _team_created,
    teams.TeamForked: _team_forked,
    teams.OwnerChanged: _owner_changed,
    teams.TeamPaused: _team_paused,
    teams.TeamResumed: _team_resumed,
    tasks.TaskCreated: _task_created,
    tasks.OriginsShared: _origins_shared,
    tasks.TaskStarted: _task_started,
    tasks.ParticipantsAdded: _participants_added,
    tasks.TaskPaused: _task_paused,
    tasks.TaskResumed: _task_resumed,
    tasks.TaskEnding: _task_ending,
    tasks.TaskEnded: _task_ended,
    stages.StageAdded: _stage_added,
    stages.StageStarted: _stage_started,
    stages.StageEnded: _stage_ended,
    stages.StageReported: _stage_reported,
    stages.SubtaskAssigned: _subtask_assigned,
    stages.SubtaskHandedOver: _subtask_handed_over,
    stages.SubtaskEnded: _subtask_ended,
    stages.MemberChanged: _member_changed,
    stages.MemberCompleted: _member_completed,
    NotePosted: _note_posted,
    ValueSet: _value_set,
}
