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


def reduce(state: TeamState, event: Event) -> TeamState:
    """Return the team state after `event`."""
    return evolve(REDUCERS[type(event)](state, event), version=state.version + 1, at=event.at)


def _with_task(state: TeamState, name: TaskId, /, **changes: object) -> TeamState:
    return evolve(state, tasks=state.tasks.set(name, evolve(state.tasks[name], **changes)))


def _without_all(table: Map[K, V], keys: Iterable[K]) -> Map[K, V]:
    for key in keys:
        table = remove_key(table, key)
    return table


def _with_stage(state: TeamState, stage: Stage) -> TeamState:
    return evolve(state, stages=state.stages.set(stage.stage_id, stage))


def _with_agent(state: TeamState, agent: AgentState) -> TeamState:
    return evolve(state, agents=state.agents.set(agent.agent_id, agent))


def _with_thread(state: TeamState, thread: Thread) -> TeamState:
    return evolve(state, threads=state.threads.set(thread.thread_id, thread))


def _with_step(state: TeamState, step: Step) -> TeamState:
    return evolve(state, steps=state.steps.set(step.step_id, step))


def _with_budget(state: TeamState, budget: Budget) -> TeamState:
    return evolve(state, budgets=state.budgets.set(budget.budget_id, budget))


# ---------------------------------------------------------------------- team, tasks, stages, board


def _team_created(state: TeamState, event: teams.TeamCreated) -> TeamState:
    team = teams.Team(
        team_id=event.team_id,
        name=event.name,
        created_at=event.at,
        kit=event.kit,
        workspace=event.workspace,
        waiting_timeout=event.waiting_timeout,
    )
    return evolve(state, team=team, budgets=state.budgets.set(TEAM_BUDGET, Budget(budget_id=TEAM_BUDGET)))


def _team_forked(state: TeamState, event: teams.TeamForked) -> TeamState:
    found = {name: steps.apply_fork(step) for name, step in state.steps.items() if step.prepared}
    team = evolve(state.team, team_id=event.team_id, origin=event.origin, epoch=0)
    return evolve(state, team=team, steps=state.steps.update(found), grants=Map(), releases=Map())


def _origins_shared(state: TeamState, event: tasks.OriginsShared) -> TeamState:
    return _with_task(state, event.task_id, origins=merge_labels(state.tasks[event.task_id].origins, event.origins))


def _task_created(state: TeamState, event: tasks.TaskCreated) -> TeamState:
    budget = task_budget(event.task_id)
    above = state.tasks.get(event.parent) if event.parent is not None else None
    if above is not None:
        state = _with_task(state, above.task_id, parts=(*above.parts, event.task_id))
    return evolve(
        state,
        team=evolve(state.team, tasks_made=state.team.tasks_made + 1),
        tasks=state.tasks.set(event.task_id, tasks.create_task(event)),
        budgets=state.budgets.set(budget, Budget(budget_id=budget)),
        agents=_with_duty(state.agents, event.group, Duty(task_id=event.task_id, stage_id=None)),
    )


def _with_duty(table: Map[AgentId, AgentState], names: tuple[AgentId, ...], duty: Duty) -> Map[AgentId, AgentState]:
    for name in names:
        table = table.set(name, agents.with_duty(table[name], duty))
    return table


def _participants_added(state: TeamState, event: tasks.ParticipantsAdded) -> TeamState:
    task = state.tasks[event.task_id]
    state = _with_task(state, task.task_id, group=tuple(dict.fromkeys((*task.group, *event.agents))))
    duty = Duty(task_id=event.task_id, stage_id=None)
    return evolve(state, agents=_with_duty(state.agents, event.agents, duty))


def _task_handed_over(state: TeamState, event: tasks.TaskHandedOver) -> TeamState:
    task = tasks.apply_hand_over(state.tasks[event.task_id], event)
    return evolve(state, tasks=state.tasks.set(event.task_id, task))


def _task_ending(state: TeamState, event: tasks.TaskEnding) -> TeamState:
    ending = {"ending": event.state, "summary": event.summary, "evidence": event.evidence}
    return _with_task(state, event.task_id, state="cancelling", **ending)


def _task_ended(state: TeamState, event: tasks.TaskEnded) -> TeamState:
    task = state.tasks[event.task_id]
    above = state.tasks.get(task.parent) if task.parent is not None else None
    if above is not None:
        state = _with_task(state, above.task_id, parts=tuple(part for part in above.parts if part != event.task_id))
    values, artifacts = value_key(task.task_id, ""), artifact_key(task.task_id, ArtifactId(""))
    return evolve(
        state,
        tasks=state.tasks.delete(event.task_id),
        budgets=remove_key(state.budgets, task_budget(event.task_id)),
        agents=_without_duties(state, task.group, event.task_id, None),
        values=_without_all(state.values, [key for key in state.values if key.startswith(values)]),
        artifacts=_without_all(state.artifacts, [key for key in state.artifacts if key.startswith(artifacts)]),
        groups=_without_all(
            state.groups, [key for key, group in state.groups.items() if group.task_id == task.task_id]
        ),
        notes=_without_all(state.notes, knowledge.list_newest_notes(task.task_id, task.notes_made)),
    )


def _without_duties(
    state: TeamState, names: tuple[AgentId, ...], task: TaskId, stage: StageId | None
) -> Map[AgentId, AgentState]:
    table = state.agents
    for name in names:
        table = table.set(name, agents.without_duties(table[name], task, stage))
    return table


def _stage_added(state: TeamState, event: stages.StageAdded) -> TeamState:
    task = state.tasks[event.task_id]
    planned = (*task.stages, event.stage_id)
    state = _with_task(state, task.task_id, stages=planned, stages_made=task.stages_made + 1)
    return _with_stage(state, stages.create_stage(event))


def _stage_started(state: TeamState, event: stages.StageStarted) -> TeamState:
    stage = evolve(state.stages[event.stage_id], state="running", started_at=event.at)
    duty = Duty(task_id=event.task_id, stage_id=event.stage_id)
    names = tuple(member.agent_id for member in stage.members)
    return evolve(_with_stage(state, stage), agents=_with_duty(state.agents, names, duty))


def _stage_ended(state: TeamState, event: stages.StageEnded) -> TeamState:
    task = state.tasks[event.task_id]
    task = evolve(
        task,
        stages=tuple(name for name in task.stages if name != event.stage_id),
        failed_stages=task.failed_stages + (event.state == "failed"),
    )
    return evolve(
        state,
        stages=state.stages.delete(event.stage_id),
        tasks=state.tasks.set(event.task_id, task),
        agents=_without_duties(state, task.group, event.task_id, event.stage_id),
    )


def _stage_replanned(state: TeamState, event: stages.StageReplanned) -> TeamState:
    stage = stages.apply_replan(state.stages[event.stage_id], event)
    duty = Duty(task_id=stage.task_id, stage_id=stage.stage_id)
    working = tuple(subtask.agent for subtask in stage.subtasks if subtask.state in ("init", "running"))
    table = _with_duty(state.agents, working, duty) if stage.state == "running" else state.agents
    return evolve(_with_stage(state, stage), agents=table)


def _subtask_assigned(state: TeamState, event: stages.SubtaskAssigned) -> TeamState:
    changes = {"state": "running", "started_at": event.at}
    stage = stages.with_subtask(state.stages[event.stage_id], event.subtask_id, **changes)
    return _with_stage(state, stages.with_member(stage, event.agent_id, state="working"))


def _subtask_handed_over(state: TeamState, event: stages.SubtaskHandedOver) -> TeamState:
    stage = stages.with_subtask(state.stages[event.stage_id], event.subtask_id, agent=event.agent_id)
    state = _with_stage(state, stages.with_member(stage, event.agent_id, state="working"))
    duty = Duty(task_id=stage.task_id, stage_id=stage.stage_id)
    return evolve(state, agents=_with_duty(state.agents, (event.agent_id,), duty))


def _note_posted(state: TeamState, event: knowledge.NotePosted) -> TeamState:
    task = state.tasks[event.note.task_id]
    notes = state.notes.set(event.note.note_id, knowledge.truncate_note(event.note))
    made = task.notes_made + 1
    old = set(knowledge.list_newest_notes(task.task_id, made - 1)).difference(
        knowledge.list_newest_notes(task.task_id, made)
    )
    state = evolve(state, notes=_without_all(notes, old))
    return _with_task(state, task.task_id, notes_made=made)


def _value_set(state: TeamState, event: knowledge.ValueSet) -> TeamState:
    return evolve(state, values=state.values.set(value_key(event.value.task_id, event.value.key), event.value))


# ---------------------------------------------------------------------- agents, threads, steps, budgets


def _blueprints_declared(state: TeamState, event: agents.Declared) -> TeamState:
    return evolve(
        state,
        blueprints=Map({spec.name: spec for spec in event.blueprints}),
        abilities=Map({ability.name: ability for ability in event.abilities}),
        team=evolve(state.team, approvals_expire=event.approvals_expire),
    )


def _agent_added(state: TeamState, event: agents.AgentAdded) -> TeamState:
    agent = agents.AgentState(agent_id=event.agent_id, spec=event.spec, made_by=event.made_by, origins=event.origins)
    return _with_agent(state, agent)


def _agent_removed(state: TeamState, event: agents.AgentRemoved) -> TeamState:
    table = state.tasks
    for name, task in state.tasks.items():
        if event.agent_id in task.group:
            table = table.set(
                name, evolve(task, group=tuple(member for member in task.group if member != event.agent_id))
            )
    return evolve(
        state,
        agents=state.agents.delete(event.agent_id),
        retired=state.retired.set(event.agent_id, event.why),
        tasks=table,
        budgets=remove_key(state.budgets, agent_budget(event.agent_id)),
    )


def _duty_taken(state: TeamState, event: agents.DutyTaken) -> TeamState:
    return _with_agent(state, agents.with_duty(state.agents[event.agent_id], event.duty))


def _agent_remembered(state: TeamState, event: agents.Remembered) -> TeamState:
    return _with_agent(state, agents.append_memory(state.agents[event.agent_id], event.content, event.origins))


def _window_moved(state: TeamState, event: threads.WindowMoved) -> TeamState:
    thread = evolve(state.threads[event.thread_id], window_from=event.window_from, size=event.size)
    return _with_thread(state, thread)


def _workspace_set(state: TeamState, event: threads.WorkspaceSet) -> TeamState:
    return _with_thread(state, evolve(state.threads[event.thread_id], workspace=event.workspace))


def _notice_added(state: TeamState, event: threads.Noticed) -> TeamState:
    thread = state.threads[event.thread_id]
    return _with_thread(state, evolve(thread, notices=(*thread.notices, event.text)))


def _step_queued(state: TeamState, event: steps.StepQueued) -> TeamState:
    agent = agents.queue_step(state.agents[event.agent_id], event.step_id, event.place)
    thread = state.threads[event.thread_id]
    thread = evolve(
        thread,
        open_steps=thread.open_steps + 1,
        open_calls=thread.open_calls + (event.work.call_id is not None),
    )
    thread = threads.add_origins(threads.add_principals(thread, event.on_behalf), event.origins, event.at)
    return evolve(
        state,
        steps=state.steps.set(event.step_id, steps.create_step(event, state.version + 1)),
        agents=state.agents.set(event.agent_id, agent),
        threads=state.threads.set(event.thread_id, thread),
    )


def _step_changed(state: TeamState, event: steps.StepChanged) -> TeamState:
    step = state.steps[event.step_id]
    thread = state.threads[step.thread_id]
    calls = thread.open_calls + (event.work.call_id is not None) - (step.work.call_id is not None)
    thread = threads.add_origins(evolve(thread, open_calls=calls), event.origins, event.at)
    state = evolve(state, threads=state.threads.set(step.thread_id, thread))
    state_name = "pending" if event.pending else "init"
    origins = merge_labels(step.origins, event.origins)
    return _with_step(state, evolve(step, work=event.work, state=state_name, changed=True, origins=origins))


def _step_blocked(state: TeamState, event: steps.StepBlocked) -> TeamState:
    step = state.steps[event.step_id]
    if event.approval is not None and step.approval is not None:
        state = evolve(state, approvals=remove_key(state.approvals, step.approval))
    state = _with_step(state, steps.apply_block(step, event))
    if event.budget is None:
        return evolve(state, awaiting_budget=remove_key(state.awaiting_budget, event.step_id))
    return evolve(state, awaiting_budget=state.awaiting_budget.set(event.step_id, event.budget))


def _step_started(state: TeamState, event: steps.StepStarted) -> TeamState:
    step = state.steps[event.step_id]
    table = state.budgets
    for name in state.budgets_of(step.task_id, step.agent_id):
        old = table[name]
        new = budgets.reserve(old, event.reserved)
        if new is not old:
            table = table.set(name, new)
    return evolve(
        state,
        steps=state.steps.set(event.step_id, steps.apply_start(step, event)),
        agents=state.agents.set(step.agent_id, agents.start_step(state.agents[step.agent_id], event.step_id)),
        budgets=table,
        awaiting_budget=remove_key(state.awaiting_budget, event.step_id),
    )


def _settle_budgets(state: TeamState, step: Step, spent: Amounts) -> Map[BudgetId, Budget]:
    table = state.budgets
    for name in state.budgets_of(step.task_id, step.agent_id):
        table = table.set(name, budgets.settle(table[name], step.reserved, spent))
    return table


def _effect_prepared(state: TeamState, event: steps.EffectPrepared) -> TeamState:
    step = state.steps[event.step_id]
    return _with_step(state, evolve(step, prepared=(*step.prepared, *event.prepared)))


def _step_cancelling(state: TeamState, event: steps.StepCancelling) -> TeamState:
    return _with_step(state, evolve(state.steps[event.step_id], state="cancelling", then=event.then))


def _step_interrupted(state: TeamState, event: steps.StepInterrupted) -> TeamState:
    step = state.steps[event.step_id]
    return evolve(
        state,
        steps=state.steps.set(event.step_id, steps.apply_interruption(step, event.partial)),
        agents=state.agents.set(step.agent_id, agents.requeue_step(state.agents[step.agent_id], event.step_id)),
        budgets=_settle_budgets(state, step, event.spent),
    )


def _step_ended(state: TeamState, event: steps.StepEnded) -> TeamState:
    step = state.steps[event.step_id]
    ran = step.started_at is not None
    thread = state.threads[step.thread_id]
    thread = evolve(
        thread,
        open_steps=thread.open_steps - 1,
        open_calls=thread.open_calls - (step.work.call_id is not None),
        last=state.version + 1,
        size=thread.size + steps.count_bytes_added(step.work, event.result, event.error, event.origins),
        spoilt=step.cause if event.spoils else thread.spoilt,
        notices=thread.notices[step.notices_seen :] if event.state == "finished" else thread.notices,
    )
    thread = threads.add_origins(thread, event.origins, event.at)
    approvals = state.approvals
    if step.approval is not None:
        approvals = remove_key(approvals, step.approval)
    return evolve(
        state,
        steps=state.steps.delete(event.step_id),
        agents=state.agents.set(step.agent_id, agents.without_step(state.agents[step.agent_id], step.step_id)),
        threads=state.threads.set(step.thread_id, thread),
        budgets=_settle_budgets(state, step, event.spent) if ran else state.budgets,
        tasks=_with_ended_step(state, step, event.state),
        approvals=approvals,
        awaiting_budget=remove_key(state.awaiting_budget, event.step_id),
    )


def _with_ended_step(state: TeamState, step: Step, end: steps.StepEnd) -> Map[TaskId, Task]:
    """Return the tasks: a step may have ended as uncertain, and a tool step of a routing team is progress."""
    task = state.tasks[step.task_id]
    changed = tasks.note_tool_use(task) if task.hops and step.work.type == "tool" else task
    if end == "uncertain":
        changed = evolve(changed, uncertain=(*task.uncertain, step.step_id))
    return state.tasks if changed is task else state.tasks.set(step.task_id, changed)


def _limits_set(state: TeamState, event: budgets.LimitsSet) -> TeamState:
    budget = state.budgets.get(event.budget_id) or Budget(budget_id=event.budget_id)
    # Reuse the UNLIMITED object, also after a restart: budgets without limits keep no reservations.
    limits = UNLIMITED if event.limits == UNLIMITED else event.limits
    state = _with_budget(state, budget)
    reserved = NOTHING if limits is UNLIMITED else _sum_reserved(state, event.budget_id)
    budget = evolve(budget, limits=limits, reserved=reserved)
    return _with_budget(state, budget)


def _sum_reserved(state: TeamState, name: BudgetId) -> Amounts:
    total = NOTHING
    for agent in state.agents.values():
        step = state.steps[agent.running] if agent.running is not None else None
        if step is not None and name in state.budgets_of(step.task_id, step.agent_id):
            total = total.plus(step.reserved)
    return total


def _amounts_spent(state: TeamState, event: budgets.Spent) -> TeamState:
    budget = state.budgets[event.budget_id]
    budget = evolve(budget, spent=budget.spent.plus(event.amounts))
    return _with_budget(state, budget)


# ---------------------------------------------------------------------- messages, approvals, memories, artifacts


def _message_sent(state: TeamState, event: messages.MessageSent) -> TeamState:
    message = event.message
    sender = state.agents[message.sender_id]
    waits = state.waits
    for wait in messages.create_waits(message, event.thread_id):
        waits = waits.set(wait.waiting_id, wait)
    sender = evolve(
        sender,
        messages_made=sender.messages_made + 1,
        step_lock=(*sender.step_lock, *(message.waiting or ())),
    )
    receivers = message.receiver if message.need_reply and message.group is None else ()
    state = evolve(state, agents=state.agents.set(sender.agent_id, sender), waits=waits)
    if not any(state.agents[name].spec.kind == "human" for name in receivers):
        return state
    number = state.team.letters_made + 1
    return evolve(
        state,
        team=evolve(state.team, letters_made=number),
        mail=state.mail.set(message.message_id, message),
        letters=state.letters.set(message.message_id, number),
    )


def _group_formed(state: TeamState, event: messages.GroupFormed) -> TeamState:
    return evolve(state, groups=state.groups.set(event.group.group_id, event.group))


def _message_settled(state: TeamState, event: messages.MessageSettled) -> TeamState:
    message = state.mail[event.message_id]
    left = tuple(name for name in message.receiver if name != event.agent_id)
    people = any(name in state.agents and state.agents[name].spec.kind == "human" for name in left)
    if not people:
        letters = state.letters.delete(event.message_id)
        return evolve(state, mail=state.mail.delete(event.message_id), letters=letters)
    waiting = message.waiting
    if waiting is not None:
        waiting = tuple(
            waiting_id for name, waiting_id in zip(message.receiver, waiting, strict=True) if name != event.agent_id
        )
    return evolve(state, mail=state.mail.set(event.message_id, evolve(message, receiver=left, waiting=waiting)))


def _wait_released(state: TeamState, event: messages.WaitReleased) -> TeamState:
    waiter = agents.remove_wait(state.agents[state.waits[event.waiting_id].waiter], event.waiting_id)
    return evolve(
        state,
        waits=state.waits.delete(event.waiting_id),
        agents=state.agents.set(waiter.agent_id, waiter),
    )


def _approval_requested(state: TeamState, event: approvals.ApprovalRequested) -> TeamState:
    return evolve(state, approvals=state.approvals.set(event.approval_id, approvals.create_approval(event)))


def _approval_answered(state: TeamState, event: approvals.ApprovalAnswered) -> TeamState:
    approval = approvals.apply_answer(state.approvals[event.approval_id], event)
    state = evolve(state, approvals=state.approvals.set(event.approval_id, approval))
    grants, releases = state.grants, state.releases
    if event.grant:
        grants = grants.set(event.grant, approvals.Grant(rule=event.grant, by=event.by, at=event.at))
    for place in event.release.splitlines():
        releases = releases.set(place, approvals.Grant(rule=place, by=event.by, at=event.at))
    return evolve(state, grants=grants, releases=releases)


def _memory_saved(state: TeamState, event: knowledge.MemorySaved) -> TeamState:
    memory = event.memory
    memories = _without_all(state.memories, memory.merged_from)
    # Ids are in chronological order, even after all memories are cleared.
    team = evolve(state.team, last_memory=max(state.team.last_memory, memory.memory_id))
    return evolve(state, team=team, memories=memories.set(memory.memory_id, memory))


def _artifact_written(state: TeamState, event: knowledge.ArtifactWritten) -> TeamState:
    key = artifact_key(event.artifact.task_id, event.artifact.artifact_id)
    artifact = knowledge.add_version(state.artifacts.get(key), event.artifact)
    return evolve(state, artifacts=state.artifacts.set(key, artifact))


REDUCERS: Final[dict[type, Callable[[TeamState, Any], TeamState]]] = {
    teams.TeamCreated: _team_created,
    teams.TeamForked: _team_forked,
    teams.OwnerChanged: lambda state, event: evolve(state, team=evolve(state.team, epoch=event.epoch)),
    teams.TeamPaused: lambda state, event: evolve(state, team=evolve(state.team, paused=event.why)),
    teams.TeamResumed: lambda state, _: evolve(state, team=evolve(state.team, paused=None)),
    tasks.TaskCreated: _task_created,
    tasks.OriginsShared: _origins_shared,
    tasks.TaskStarted: lambda state, event: _with_task(state, event.task_id, state="running"),
    tasks.ParticipantsAdded: _participants_added,
    tasks.TaskPaused: lambda state, event: _with_task(state, event.task_id, paused=event.why),
    tasks.TaskResumed: lambda state, event: _with_task(state, event.task_id, paused=None),
    tasks.TaskHandedOver: _task_handed_over,
    tasks.TaskEnding: _task_ending,
    tasks.TaskEnded: _task_ended,
    stages.StageAdded: _stage_added,
    stages.StageStarted: _stage_started,
    stages.StageEnded: _stage_ended,
    stages.StageReported: lambda state, event: _with_stage(state, evolve(state.stages[event.stage_id], reported=True)),
    stages.SubtaskAssigned: _subtask_assigned,
    stages.SubtaskHandedOver: _subtask_handed_over,
    stages.StageReplanned: _stage_replanned,
    stages.SubtaskEnded: lambda state, event: _with_stage(
        state, stages.apply_subtask_end(state.stages[event.stage_id], event)
    ),
    stages.SubtaskRetried: lambda state, event: _with_stage(
        state, stages.apply_retry(state.stages[event.stage_id], event)
    ),
    stages.MemberChanged: lambda state, event: _with_stage(
        state, stages.with_member(state.stages[event.stage_id], event.agent_id, state=event.state)
    ),
    stages.MemberCompleted: lambda state, event: _with_stage(
        state, stages.with_member(state.stages[event.stage_id], event.agent_id, completion=event.completion)
    ),
    knowledge.NotePosted: _note_posted,
    knowledge.ValueSet: _value_set,
    agents.Declared: _blueprints_declared,
    agents.AgentAdded: _agent_added,
    agents.AgentChanged: lambda state, event: _with_agent(state, evolve(state.agents[event.agent_id], spec=event.spec)),
    agents.AgentRemoved: _agent_removed,
    agents.DutyTaken: _duty_taken,
    agents.Remembered: _agent_remembered,
    threads.ThreadOpened: lambda state, event: _with_thread(state, threads.create_thread(event)),
    threads.ThreadClosed: lambda state, event: evolve(state, threads=remove_key(state.threads, event.thread_id)),
    threads.WindowMoved: _window_moved,
    threads.WorkspaceSet: _workspace_set,
    threads.Noticed: _notice_added,
    steps.StepQueued: _step_queued,
    steps.StepChanged: _step_changed,
    steps.StepBlocked: _step_blocked,
    steps.StepUnblocked: lambda state, event: _with_step(state, evolve(state.steps[event.step_id], state="init")),
    steps.StepStarted: _step_started,
    steps.EffectPrepared: _effect_prepared,
    steps.StepCancelling: _step_cancelling,
    steps.StepInterrupted: _step_interrupted,
    steps.StepEnded: _step_ended,
    budgets.LimitsSet: _limits_set,
    budgets.Spent: _amounts_spent,
    budgets.LimitReached: lambda state, _: state,
    messages.MessageSent: _message_sent,
    messages.GroupFormed: _group_formed,
    messages.MessageSettled: _message_settled,
    messages.WaitReleased: _wait_released,
    approvals.ApprovalRequested: _approval_requested,
    approvals.ApprovalAnswered: _approval_answered,
    approvals.ApprovalVoided: lambda state, event: evolve(
        state, approvals=remove_key(state.approvals, event.approval_id)
    ),
    timers.TimerSet: lambda state, event: evolve(state, timers=state.timers.set(event.timer.timer_id, event.timer)),
    timers.TimerFired: lambda state, event: evolve(state, timers=remove_key(state.timers, event.timer_id)),
    timers.TimerCancelled: lambda state, event: evolve(state, timers=remove_key(state.timers, event.timer_id)),
    knowledge.MemorySaved: _memory_saved,
    knowledge.MemoriesCleared: lambda state, event: evolve(
        state, memories=_without_all(state.memories, event.memory_ids)
    ),
    knowledge.ArtifactWritten: _artifact_written,
}
