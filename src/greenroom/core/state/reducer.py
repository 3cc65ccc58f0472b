"""The reducer: `reduce(state, event)` returns the next team state. Pure; it trusts events, because rules made them.

Only this module connects the nouns of the state. Each noun knows the others by id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from immutables import Map

from greenroom.core.base.amounts import NOTHING, UNLIMITED, Amounts
from greenroom.core.base.ids import (
    TEAM_BUDGET,
    AgentId,
    ArtifactId,
    BudgetId,
    StageId,
    TaskId,
    agent_budget,
    task_budget,
)
from greenroom.core.base.records import evolve
from greenroom.core.state import agent as agents
from greenroom.core.state import approval as approvals
from greenroom.core.state import budget as budgets
from greenroom.core.state import knowledge
from greenroom.core.state import message as messages
from greenroom.core.state import stage as stages
from greenroom.core.state import step as steps
from greenroom.core.state import task as tasks
from greenroom.core.state import team as teams
from greenroom.core.state import thread as threads
from greenroom.core.state import timer as timers
from greenroom.core.state.agent import AgentState, Duty
from greenroom.core.state.budget import Budget
from greenroom.core.state.events import Event
from greenroom.core.state.origin import merge_labels
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.team_state import TeamState, artifact_key, remove_key, value_key
from greenroom.core.state.thread import Thread

K = TypeVar("K")
V = TypeVar("V")


def reduce(world: TeamState, event: Event) -> TeamState:
    """Return the team state after `event`."""
    return evolve(REDUCERS[type(event)](world, event), version=world.version + 1, at=event.at)


def _with_task(world: TeamState, name: TaskId, **changes: object) -> TeamState:
    return evolve(world, tasks=world.tasks.set(name, evolve(world.tasks[name], **changes)))


def _without_all(table: Map[K, V], keys: Iterable[K]) -> Map[K, V]:
    for key in keys:
        table = remove_key(table, key)
    return table


def _with_stage(world: TeamState, stage: Stage) -> TeamState:
    return evolve(world, stages=world.stages.set(stage.stage_id, stage))


def _with_agent(world: TeamState, agent: AgentState) -> TeamState:
    return evolve(world, agents=world.agents.set(agent.agent_id, agent))


def _with_thread(world: TeamState, thread: Thread) -> TeamState:
    return evolve(world, threads=world.threads.set(thread.thread_id, thread))


def _with_step(world: TeamState, step: Step) -> TeamState:
    return evolve(world, steps=world.steps.set(step.step_id, step))


def _with_budget(world: TeamState, budget: Budget) -> TeamState:
    return evolve(world, budgets=world.budgets.set(budget.budget_id, budget))


# ---------------------------------------------------------------------- team, tasks, stages, board


def _team_created(world: TeamState, event: teams.TeamCreated) -> TeamState:
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


def _team_forked(world: TeamState, event: teams.TeamForked) -> TeamState:
    found = {name: steps.apply_fork(step) for name, step in world.steps.items() if step.prepared}
    team = evolve(world.team, team_id=event.team_id, origin=event.origin, epoch=0)
    return evolve(world, team=team, steps=world.steps.update(found), grants=Map(), releases=Map())


def _origins_shared(world: TeamState, event: tasks.OriginsShared) -> TeamState:
    return _with_task(world, event.task_id, origins=merge_labels(world.tasks[event.task_id].origins, event.origins))


def _task_created(world: TeamState, event: tasks.TaskCreated) -> TeamState:
    budget = task_budget(event.task_id)
    above = world.tasks.get(event.parent) if event.parent is not None else None
    if above is not None:
        world = _with_task(world, above.task_id, parts=(*above.parts, event.task_id))
    return evolve(
        world,
        team=evolve(world.team, tasks_made=world.team.tasks_made + 1),
        tasks=world.tasks.set(event.task_id, tasks.create_task(event)),
        budgets=world.budgets.set(budget, Budget(budget_id=budget)),
        agents=_with_duty(world.agents, event.group, Duty(task_id=event.task_id, stage_id=None)),
    )


def _with_duty(table: Map[AgentId, AgentState], names: tuple[AgentId, ...], duty: Duty) -> Map[AgentId, AgentState]:
    for name in names:
        table = table.set(name, agents.with_duty(table[name], duty))
    return table


def _participants_added(world: TeamState, event: tasks.ParticipantsAdded) -> TeamState:
    task = world.tasks[event.task_id]
    world = _with_task(world, task.task_id, group=tuple(dict.fromkeys((*task.group, *event.agents))))
    duty = Duty(task_id=event.task_id, stage_id=None)
    return evolve(world, agents=_with_duty(world.agents, event.agents, duty))


def _task_ending(world: TeamState, event: tasks.TaskEnding) -> TeamState:
    ending = {"ending": event.state, "summary": event.summary, "evidence": event.evidence}
    return _with_task(world, event.task_id, state="cancelling", **ending)


def _task_ended(world: TeamState, event: tasks.TaskEnded) -> TeamState:
    task = world.tasks[event.task_id]
    above = world.tasks.get(task.parent) if task.parent is not None else None
    if above is not None:
        world = _with_task(world, above.task_id, parts=tuple(part for part in above.parts if part != event.task_id))
    values, artifacts = value_key(task.task_id, ""), artifact_key(task.task_id, ArtifactId(""))
    return evolve(
        world,
        tasks=world.tasks.delete(event.task_id),
        budgets=remove_key(world.budgets, task_budget(event.task_id)),
        agents=_without_duties(world, task.group, event.task_id, None),
        values=_without_all(world.values, [key for key in world.values if key.startswith(values)]),
        artifacts=_without_all(world.artifacts, [key for key in world.artifacts if key.startswith(artifacts)]),
        groups=_without_all(
            world.groups, [key for key, group in world.groups.items() if group.task_id == task.task_id]
        ),
        notes=_without_all(world.notes, knowledge.list_newest_notes(task.task_id, task.notes_made)),
    )


def _without_duties(
    world: TeamState, names: tuple[AgentId, ...], task: TaskId, stage: StageId | None
) -> Map[AgentId, AgentState]:
    table = world.agents
    for name in names:
        table = table.set(name, agents.without_duties(table[name], task, stage))
    return table


def _stage_added(world: TeamState, event: stages.StageAdded) -> TeamState:
    task = world.tasks[event.task_id]
    planned = (*task.stages, event.stage_id)
    world = _with_task(world, task.task_id, stages=planned, stages_made=task.stages_made + 1)
    return _with_stage(world, stages.create_stage(event))


def _stage_started(world: TeamState, event: stages.StageStarted) -> TeamState:
    stage = evolve(world.stages[event.stage_id], state="running", started_at=event.at)
    duty = Duty(task_id=event.task_id, stage_id=event.stage_id)
    names = tuple(member.agent_id for member in stage.members)
    return evolve(_with_stage(world, stage), agents=_with_duty(world.agents, names, duty))


def _stage_ended(world: TeamState, event: stages.StageEnded) -> TeamState:
    task = world.tasks[event.task_id]
    task = evolve(
        task,
        stages=tuple(name for name in task.stages if name != event.stage_id),
        failed_stages=task.failed_stages + (event.state == "failed"),
    )
    return evolve(
        world,
        stages=world.stages.delete(event.stage_id),
        tasks=world.tasks.set(event.task_id, task),
        agents=_without_duties(world, task.group, event.task_id, event.stage_id),
    )


def _subtask_assigned(world: TeamState, event: stages.SubtaskAssigned) -> TeamState:
    stage = stages.with_subtask(world.stages[event.stage_id], event.subtask_id, state="running")
    return _with_stage(world, stages.with_member(stage, event.agent_id, state="working"))


def _subtask_handed_over(world: TeamState, event: stages.SubtaskHandedOver) -> TeamState:
    stage = stages.with_subtask(world.stages[event.stage_id], event.subtask_id, agent=event.agent_id)
    world = _with_stage(world, stages.with_member(stage, event.agent_id, state="working"))
    duty = Duty(task_id=stage.task_id, stage_id=stage.stage_id)
    return evolve(world, agents=_with_duty(world.agents, (event.agent_id,), duty))


def _subtask_ended(world: TeamState, event: stages.SubtaskEnded) -> TeamState:
    return _with_stage(
        world,
        stages.with_subtask(
            world.stages[event.stage_id],
            event.subtask_id,
            state=event.state,
            summary=event.summary,
            evidence=event.evidence,
        ),
    )


def _member_changed(world: TeamState, event: stages.MemberChanged) -> TeamState:
    return _with_stage(world, stages.with_member(world.stages[event.stage_id], event.agent_id, state=event.state))


def _member_completed(world: TeamState, event: stages.MemberCompleted) -> TeamState:
    return _with_stage(
        world, stages.with_member(world.stages[event.stage_id], event.agent_id, completion=event.completion)
    )


def _note_posted(world: TeamState, event: knowledge.NotePosted) -> TeamState:
    task = world.tasks[event.note.task_id]
    notes = world.notes.set(event.note.note_id, knowledge.truncate_note(event.note))
    made = task.notes_made + 1
    old = set(knowledge.list_newest_notes(task.task_id, made - 1)).difference(
        knowledge.list_newest_notes(task.task_id, made)
    )
    world = evolve(world, notes=_without_all(notes, old))
    return _with_task(world, task.task_id, notes_made=made)


def _value_set(world: TeamState, event: knowledge.ValueSet) -> TeamState:
    key = value_key(event.value.task_id, event.value.key)
    return evolve(world, values=world.values.set(key, event.value))


# ---------------------------------------------------------------------- agents, threads, steps, budgets


def _blueprints_declared(world: TeamState, event: agents.Declared) -> TeamState:
    return evolve(
        world,
        blueprints=Map({spec.name: spec for spec in event.blueprints}),
        abilities=Map({ability.name: ability for ability in event.abilities}),
        team=evolve(world.team, approvals_expire=event.approvals_expire),
    )


def _agent_added(world: TeamState, event: agents.AgentAdded) -> TeamState:
    agent = agents.AgentState(agent_id=event.agent_id, spec=event.spec, made_by=event.made_by, origins=event.origins)
    return _with_agent(world, agent)


def _agent_removed(world: TeamState, event: agents.AgentRemoved) -> TeamState:
    table = world.tasks
    for name, task in world.tasks.items():
        if event.agent_id in task.group:
            table = table.set(
                name, evolve(task, group=tuple(member for member in task.group if member != event.agent_id))
            )
    return evolve(
        world,
        agents=world.agents.delete(event.agent_id),
        retired=world.retired.set(event.agent_id, event.why),
        tasks=table,
        budgets=remove_key(world.budgets, agent_budget(event.agent_id)),
    )


def _duty_taken(world: TeamState, event: agents.DutyTaken) -> TeamState:
    return _with_agent(world, agents.with_duty(world.agents[event.agent_id], event.duty))


def _agent_remembered(world: TeamState, event: agents.Remembered) -> TeamState:
    agent = agents.append_memory(world.agents[event.agent_id], event.content, event.origins)
    return _with_agent(world, agent)


def _window_moved(world: TeamState, event: threads.WindowMoved) -> TeamState:
    thread = evolve(world.threads[event.thread_id], window_from=event.window_from, size=event.size)
    return _with_thread(world, thread)


def _workspace_set(world: TeamState, event: threads.WorkspaceSet) -> TeamState:
    thread = evolve(world.threads[event.thread_id], workspace=event.workspace)
    return _with_thread(world, thread)


def _notice_added(world: TeamState, event: threads.Noticed) -> TeamState:
    thread = world.threads[event.thread_id]
    return _with_thread(world, evolve(thread, notices=(*thread.notices, event.text)))


def _step_queued(world: TeamState, event: steps.StepQueued) -> TeamState:
    agent = agents.queue_step(world.agents[event.agent_id], event.step_id, event.place)
    thread = world.threads[event.thread_id]
    thread = evolve(
        thread,
        open_steps=thread.open_steps + 1,
        open_calls=thread.open_calls + (event.work.call_id is not None),
    )
    thread = threads.add_origins(threads.add_principals(thread, event.on_behalf), event.origins, event.at)
    return evolve(
        world,
        steps=world.steps.set(event.step_id, steps.create_step(event, world.version + 1)),
        agents=world.agents.set(event.agent_id, agent),
        threads=world.threads.set(event.thread_id, thread),
    )


def _step_changed(world: TeamState, event: steps.StepChanged) -> TeamState:
    step = world.steps[event.step_id]
    thread = world.threads[step.thread_id]
    calls = thread.open_calls + (event.work.call_id is not None) - (step.work.call_id is not None)
    thread = threads.add_origins(evolve(thread, open_calls=calls), event.origins, event.at)
    world = evolve(world, threads=world.threads.set(step.thread_id, thread))
    state = "pending" if event.pending else "init"
    origins = merge_labels(step.origins, event.origins)
    return _with_step(world, evolve(step, work=event.work, state=state, changed=True, origins=origins))


def _step_blocked(world: TeamState, event: steps.StepBlocked) -> TeamState:
    step = world.steps[event.step_id]
    if event.approval is not None and step.approval is not None:
        world = evolve(world, approvals=remove_key(world.approvals, step.approval))
    world = _with_step(world, steps.apply_block(step, event))
    if event.budget is None:
        return evolve(world, hungry=remove_key(world.hungry, event.step_id))
    return evolve(world, hungry=world.hungry.set(event.step_id, event.budget))


def _step_started(world: TeamState, event: steps.StepStarted) -> TeamState:
    step = world.steps[event.step_id]
    table = world.budgets
    for name in world.budgets_of(step.task_id, step.agent_id):
        old = table[name]
        new = budgets.reserve(old, event.reserved)
        if new is not old:
            table = table.set(name, new)
    return evolve(
        world,
        steps=world.steps.set(event.step_id, steps.apply_start(step, event)),
        agents=world.agents.set(step.agent_id, agents.start_step(world.agents[step.agent_id], event.step_id)),
        budgets=table,
        hungry=remove_key(world.hungry, event.step_id),
    )


def _settle_budgets(world: TeamState, step: Step, spent: Amounts) -> Map[BudgetId, Budget]:
    table = world.budgets
    for name in world.budgets_of(step.task_id, step.agent_id):
        table = table.set(name, budgets.settle(table[name], step.reserved, spent))
    return table


def _effect_prepared(world: TeamState, event: steps.EffectPrepared) -> TeamState:
    step = world.steps[event.step_id]
    return _with_step(world, evolve(step, prepared=(*step.prepared, *event.prepared)))


def _step_cancelling(world: TeamState, event: steps.StepCancelling) -> TeamState:
    return _with_step(world, evolve(world.steps[event.step_id], state="cancelling", then=event.then))


def _step_interrupted(world: TeamState, event: steps.StepInterrupted) -> TeamState:
    step = world.steps[event.step_id]
    return evolve(
        world,
        steps=world.steps.set(event.step_id, steps.apply_interruption(step)),
        agents=world.agents.set(step.agent_id, agents.requeue_step(world.agents[step.agent_id], event.step_id)),
        budgets=_settle_budgets(world, step, event.spent),
    )


def _step_ended(world: TeamState, event: steps.StepEnded) -> TeamState:
    step = world.steps[event.step_id]
    ran = step.started_at is not None
    thread = world.threads[step.thread_id]
    thread = evolve(
        thread,
        open_steps=thread.open_steps - 1,
        open_calls=thread.open_calls - (step.work.call_id is not None),
        last=world.version + 1,
        size=thread.size + steps.count_bytes_added(step.work, event.result, event.error, event.origins),
        spoilt=step.cause if event.spoils else thread.spoilt,
        notices=thread.notices[step.notices_seen :] if event.state == "finished" else thread.notices,
    )
    thread = threads.add_origins(thread, event.origins, event.at)
    approvals = world.approvals
    if step.approval is not None:
        approvals = remove_key(approvals, step.approval)
    return evolve(
        world,
        steps=world.steps.delete(event.step_id),
        agents=world.agents.set(step.agent_id, agents.without_step(world.agents[step.agent_id], step.step_id)),
        threads=world.threads.set(step.thread_id, thread),
        budgets=_settle_budgets(world, step, event.spent) if ran else world.budgets,
        tasks=_with_uncertain_step(world, step) if event.state == "uncertain" else world.tasks,
        approvals=approvals,
        hungry=remove_key(world.hungry, event.step_id),
    )


def _with_uncertain_step(world: TeamState, step: Step) -> Map[Any, Task]:
    task = world.tasks[step.task_id]
    return world.tasks.set(step.task_id, evolve(task, uncertain=(*task.uncertain, step.step_id)))


def _limits_set(world: TeamState, event: budgets.LimitsSet) -> TeamState:
    budget = world.budgets.get(event.budget_id) or Budget(budget_id=event.budget_id)
    # Reuse the UNLIMITED object, also after a restart: budgets without limits keep no reservations.
    limits = UNLIMITED if event.limits == UNLIMITED else event.limits
    world = _with_budget(world, budget)
    reserved = NOTHING if limits is UNLIMITED else _sum_reserved(world, event.budget_id)
    budget = evolve(budget, limits=limits, reserved=reserved)
    return _with_budget(world, budget)


def _sum_reserved(world: TeamState, name: BudgetId) -> Amounts:
    total = NOTHING
    for agent in world.agents.values():
        step = world.steps[agent.running] if agent.running is not None else None
        if step is not None and name in world.budgets_of(step.task_id, step.agent_id):
            total = total.plus(step.reserved)
    return total


def _amounts_spent(world: TeamState, event: budgets.Spent) -> TeamState:
    budget = world.budgets[event.budget_id]
    budget = evolve(budget, spent=budget.spent.plus(event.amounts))
    return _with_budget(world, budget)


# ---------------------------------------------------------------------- messages, approvals, memories, artifacts


def _message_sent(world: TeamState, event: messages.MessageSent) -> TeamState:
    message = event.message
    sender = world.agents[message.sender_id]
    waits = world.waits
    for wait in messages.create_waits(message, event.thread_id):
        waits = waits.set(wait.waiting_id, wait)
    sender = evolve(
        sender,
        messages_made=sender.messages_made + 1,
        step_lock=(*sender.step_lock, *(message.waiting or ())),
    )
    asked = message.receiver if message.need_reply and message.group is None else ()
    world = evolve(world, agents=world.agents.set(sender.agent_id, sender), waits=waits)
    if not any(world.agents[name].spec.kind == "human" for name in asked):
        return world
    number = world.team.letters_made + 1
    return evolve(
        world,
        team=evolve(world.team, letters_made=number),
        mail=world.mail.set(message.message_id, message),
        letters=world.letters.set(message.message_id, number),
    )


def _group_formed(world: TeamState, event: messages.GroupFormed) -> TeamState:
    return evolve(world, groups=world.groups.set(event.group.group_id, event.group))


def _message_settled(world: TeamState, event: messages.MessageSettled) -> TeamState:
    message = world.mail[event.message_id]
    left = tuple(name for name in message.receiver if name != event.agent_id)
    people = any(name in world.agents and world.agents[name].spec.kind == "human" for name in left)
    if not people:
        letters = world.letters.delete(event.message_id)
        return evolve(world, mail=world.mail.delete(event.message_id), letters=letters)
    waiting = message.waiting
    if waiting is not None:
        waiting = tuple(
            waiting_id for name, waiting_id in zip(message.receiver, waiting, strict=True) if name != event.agent_id
        )
    rest = evolve(message, receiver=left, waiting=waiting)
    return evolve(world, mail=world.mail.set(event.message_id, rest))


def _wait_released(world: TeamState, event: messages.WaitReleased) -> TeamState:
    waiter = agents.remove_wait(world.agents[world.waits[event.waiting_id].waiter], event.waiting_id)
    return evolve(
        world,
        waits=world.waits.delete(event.waiting_id),
        agents=world.agents.set(waiter.agent_id, waiter),
    )


def _approval_requested(world: TeamState, event: approvals.ApprovalRequested) -> TeamState:
    return evolve(world, approvals=world.approvals.set(event.approval_id, approvals.create_approval(event)))


def _approval_answered(world: TeamState, event: approvals.ApprovalAnswered) -> TeamState:
    approval = approvals.apply_answer(world.approvals[event.approval_id], event)
    world = evolve(world, approvals=world.approvals.set(event.approval_id, approval))
    grants, releases = world.grants, world.releases
    if event.grant:
        grants = grants.set(event.grant, approvals.Grant(rule=event.grant, by=event.by, at=event.at))
    for place in event.release.splitlines():
        releases = releases.set(place, approvals.Grant(rule=place, by=event.by, at=event.at))
    return evolve(world, grants=grants, releases=releases)


def _memory_saved(world: TeamState, event: knowledge.MemorySaved) -> TeamState:
    memory = event.memory
    memories = _without_all(world.memories, memory.merged_from)
    # Ids are in chronological order, even after all memories are cleared.
    team = evolve(world.team, last_memory=max(world.team.last_memory, memory.memory_id))
    return evolve(world, team=team, memories=memories.set(memory.memory_id, memory))


def _artifact_written(world: TeamState, event: knowledge.ArtifactWritten) -> TeamState:
    key = artifact_key(event.artifact.task_id, event.artifact.artifact_id)
    artifact = knowledge.add_version(world.artifacts.get(key), event.artifact)
    return evolve(world, artifacts=world.artifacts.set(key, artifact))


REDUCERS: Final[dict[type, Callable[[TeamState, Any], TeamState]]] = {
    teams.TeamCreated: _team_created,
    teams.TeamForked: _team_forked,
    teams.OwnerChanged: lambda world, event: evolve(world, team=evolve(world.team, epoch=event.epoch)),
    teams.TeamPaused: lambda world, event: evolve(world, team=evolve(world.team, paused=event.why)),
    teams.TeamResumed: lambda world, _: evolve(world, team=evolve(world.team, paused=None)),
    tasks.TaskCreated: _task_created,
    tasks.OriginsShared: _origins_shared,
    tasks.TaskStarted: lambda world, event: _with_task(world, event.task_id, state="running"),
    tasks.ParticipantsAdded: _participants_added,
    tasks.TaskPaused: lambda world, event: _with_task(world, event.task_id, paused=event.why),
    tasks.TaskResumed: lambda world, event: _with_task(world, event.task_id, paused=None),
    tasks.TaskEnding: _task_ending,
    tasks.TaskEnded: _task_ended,
    stages.StageAdded: _stage_added,
    stages.StageStarted: _stage_started,
    stages.StageEnded: _stage_ended,
    stages.StageReported: lambda world, event: _with_stage(world, evolve(world.stages[event.stage_id], reported=True)),
    stages.SubtaskAssigned: _subtask_assigned,
    stages.SubtaskHandedOver: _subtask_handed_over,
    stages.SubtaskEnded: _subtask_ended,
    stages.MemberChanged: _member_changed,
    stages.MemberCompleted: _member_completed,
    knowledge.NotePosted: _note_posted,
    knowledge.ValueSet: _value_set,
    agents.Declared: _blueprints_declared,
    agents.AgentAdded: _agent_added,
    agents.AgentChanged: lambda world, event: _with_agent(world, evolve(world.agents[event.agent_id], spec=event.spec)),
    agents.AgentRemoved: _agent_removed,
    agents.DutyTaken: _duty_taken,
    agents.Remembered: _agent_remembered,
    threads.ThreadOpened: lambda world, event: _with_thread(world, threads.create_thread(event)),
    threads.ThreadClosed: lambda world, event: evolve(world, threads=remove_key(world.threads, event.thread_id)),
    threads.WindowMoved: _window_moved,
    threads.WorkspaceSet: _workspace_set,
    threads.Noticed: _notice_added,
    steps.StepQueued: _step_queued,
    steps.StepChanged: _step_changed,
    steps.StepBlocked: _step_blocked,
    steps.StepUnblocked: lambda world, event: _with_step(world, evolve(world.steps[event.step_id], state="init")),
    steps.StepStarted: _step_started,
    steps.EffectPrepared: _effect_prepared,
    steps.StepCancelling: _step_cancelling,
    steps.StepInterrupted: _step_interrupted,
    steps.StepEnded: _step_ended,
    budgets.LimitsSet: _limits_set,
    budgets.Spent: _amounts_spent,
    budgets.LimitReached: lambda world, _: world,
    messages.MessageSent: _message_sent,
    messages.GroupFormed: _group_formed,
    messages.MessageSettled: _message_settled,
    messages.WaitReleased: _wait_released,
    approvals.ApprovalRequested: _approval_requested,
    approvals.ApprovalAnswered: _approval_answered,
    approvals.ApprovalVoided: lambda world, event: evolve(
        world, approvals=remove_key(world.approvals, event.approval_id)
    ),
    timers.TimerSet: lambda world, event: evolve(world, timers=world.timers.set(event.timer.timer_id, event.timer)),
    timers.TimerFired: lambda world, event: evolve(world, timers=remove_key(world.timers, event.timer_id)),
    timers.TimerCancelled: lambda world, event: evolve(world, timers=remove_key(world.timers, event.timer_id)),
    knowledge.MemorySaved: _memory_saved,
    knowledge.MemoriesCleared: lambda world, event: evolve(
        world, memories=_without_all(world.memories, event.memory_ids)
    ),
    knowledge.ArtifactWritten: _artifact_written,
}
