"""How agent, thread, step and budget events change the world. The hottest file of the house."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from immutables import Map

from greenroom.core.base.amounts import NOTHING, UNLIMITED, Amounts
from greenroom.core.base.ids import BudgetId, agent_budget
from greenroom.core.base.records import evolve
from greenroom.core.state import agent as agents
from greenroom.core.state import budget as budgets
from greenroom.core.state import step as steps
from greenroom.core.state import thread as threads
from greenroom.core.state.budget import Budget
from greenroom.core.state.origin import merged
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.world import World, without


def _declared(world: World, event: agents.Declared) -> World:
    return evolve(
        world,
        blueprints=Map({spec.name: spec for spec in event.blueprints}),
        abilities=Map({ability.name: ability for ability in event.abilities}),
        team=evolve(world.team, approvals_expire=event.approvals_expire),
    )


def _agent_added(world: World, event: agents.AgentAdded) -> World:
    agent = agents.Agent(agent_id=event.agent_id, spec=event.spec, made_by=event.made_by, origins=event.origins)
    return evolve(world, agents=world.agents.set(event.agent_id, agent))


def _agent_changed(world: World, event: agents.AgentChanged) -> World:
    changed = evolve(world.agents[event.agent_id], spec=event.spec)
    return evolve(world, agents=world.agents.set(event.agent_id, changed))


def _agent_removed(world: World, event: agents.AgentRemoved) -> World:
    table = world.tasks
    for name, task in world.tasks.items():
        if event.agent_id in task.group:
            table = table.set(name, evolve(task, group=tuple(one for one in task.group if one != event.agent_id)))
    return evolve(
        world,
        agents=world.agents.delete(event.agent_id),
        retired=world.retired.set(event.agent_id, event.why),
        tasks=table,
        budgets=without(world.budgets, agent_budget(event.agent_id)),
    )


def _duty_taken(world: World, event: agents.DutyTaken) -> World:
    agent = agents.with_duty(world.agents[event.agent_id], event.duty)
    return evolve(world, agents=world.agents.set(event.agent_id, agent))


def _remembered(world: World, event: agents.Remembered) -> World:
    agent = agents.remembering(world.agents[event.agent_id], event.content, event.origins)
    return evolve(world, agents=world.agents.set(event.agent_id, agent))


def _thread_opened(world: World, event: threads.ThreadOpened) -> World:
    return evolve(world, threads=world.threads.set(event.thread_id, threads.opened(event)))


def _thread_closed(world: World, event: threads.ThreadClosed) -> World:
    return evolve(world, threads=without(world.threads, event.thread_id))


def _window_moved(world: World, event: threads.WindowMoved) -> World:
    thread = evolve(world.threads[event.thread_id], window_from=event.window_from, size=event.size)
    return evolve(world, threads=world.threads.set(event.thread_id, thread))


def _workspace_set(world: World, event: threads.WorkspaceSet) -> World:
    thread = evolve(world.threads[event.thread_id], workspace=event.workspace)
    return evolve(world, threads=world.threads.set(event.thread_id, thread))


def _noticed(world: World, event: threads.Noticed) -> World:
    thread = world.threads[event.thread_id]
    thread = evolve(thread, notices=(*thread.notices, event.text))
    return evolve(world, threads=world.threads.set(event.thread_id, thread))


def _step_queued(world: World, event: steps.StepQueued) -> World:
    agent = agents.queued(world.agents[event.agent_id], event.step_id, event.place)
    thread = world.threads[event.thread_id]
    thread = evolve(
        thread,
        open_steps=thread.open_steps + 1,
        open_calls=thread.open_calls + (event.work.call_id is not None),
    )
    thread = threads.absorbed(threads.bound(thread, event.on_behalf), event.origins, event.at)
    return evolve(
        world,
        steps=world.steps.set(event.step_id, steps.queued(event, world.version + 1)),
        agents=world.agents.set(event.agent_id, agent),
        threads=world.threads.set(event.thread_id, thread),
    )


def _step_changed(world: World, event: steps.StepChanged) -> World:
    step = world.steps[event.step_id]
    thread = world.threads[step.thread_id]
    calls = thread.open_calls + (event.work.call_id is not None) - (step.work.call_id is not None)
    thread = threads.absorbed(evolve(thread, open_calls=calls), event.origins, event.at)
    world = evolve(world, threads=world.threads.set(step.thread_id, thread))
    state = "pending" if event.pending else "init"
    origins = merged(step.origins, event.origins)
    return _with_step(world, evolve(step, work=event.work, state=state, changed=True, origins=origins))


def _with_step(world: World, step: Step) -> World:
    return evolve(world, steps=world.steps.set(step.step_id, step))


def _step_blocked(world: World, event: steps.StepBlocked) -> World:
    step = world.steps[event.step_id]
    if event.approval is not None and step.approval is not None:
        world = evolve(world, approvals=without(world.approvals, step.approval))
    world = _with_step(world, steps.blocked(step, event))
    if event.budget is None:
        return evolve(world, hungry=without(world.hungry, event.step_id))
    return evolve(world, hungry=world.hungry.set(event.step_id, event.budget))


def _step_unblocked(world: World, event: steps.StepUnblocked) -> World:
    return _with_step(world, evolve(world.steps[event.step_id], state="init"))


def _step_started(world: World, event: steps.StepStarted) -> World:
    step = world.steps[event.step_id]
    table = world.budgets
    for name in world.budgets_of(step.task_id, step.agent_id):
        old = table[name]
        new = budgets.reserve(old, event.reserved)
        if new is not old:
            table = table.set(name, new)
    return evolve(
        world,
        steps=world.steps.set(event.step_id, steps.started(step, event)),
        agents=world.agents.set(step.agent_id, agents.started(world.agents[step.agent_id], event.step_id)),
        budgets=table,
        hungry=without(world.hungry, event.step_id),
    )


def _settled(world: World, step: Step, spent: Amounts) -> Map[BudgetId, Budget]:
    table = world.budgets
    for name in world.budgets_of(step.task_id, step.agent_id):
        table = table.set(name, budgets.settle(table[name], step.reserved, spent))
    return table


def _effect_prepared(world: World, event: steps.EffectPrepared) -> World:
    step = world.steps[event.step_id]
    return _with_step(world, evolve(step, prepared=(*step.prepared, *event.prepared)))


def _step_cancelling(world: World, event: steps.StepCancelling) -> World:
    return _with_step(world, evolve(world.steps[event.step_id], state="cancelling", then=event.then))


def _step_interrupted(world: World, event: steps.StepInterrupted) -> World:
    step = world.steps[event.step_id]
    return evolve(
        world,
        steps=world.steps.set(event.step_id, steps.interrupted(step)),
        agents=world.agents.set(step.agent_id, agents.requeued(world.agents[step.agent_id], event.step_id)),
        budgets=_settled(world, step, event.spent),
    )


def _step_ended(world: World, event: steps.StepEnded) -> World:
    step = world.steps[event.step_id]
    ran = step.started_at is not None
    thread = world.threads[step.thread_id]
    thread = evolve(
        thread,
        open_steps=thread.open_steps - 1,
        open_calls=thread.open_calls - (step.work.call_id is not None),
        last=world.version + 1,
        size=thread.size + steps.length(step.work, event.result, event.error, event.origins),
        spoilt=step.cause if event.spoils else thread.spoilt,
        notices=thread.notices[step.notices_seen :] if event.state == "finished" else thread.notices,
    )
    thread = threads.absorbed(thread, event.origins, event.at)
    approvals = world.approvals
    if step.approval is not None:
        approvals = without(approvals, step.approval)
    return evolve(
        world,
        steps=world.steps.delete(event.step_id),
        agents=world.agents.set(step.agent_id, agents.without_step(world.agents[step.agent_id], step.step_id)),
        threads=world.threads.set(step.thread_id, thread),
        budgets=_settled(world, step, event.spent) if ran else world.budgets,
        tasks=_with_doubt(world, step) if event.state == "uncertain" else world.tasks,
        approvals=approvals,
        hungry=without(world.hungry, event.step_id),
    )


def _with_doubt(world: World, step: Step) -> Map[Any, Task]:
    task = world.tasks[step.task_id]
    return world.tasks.set(step.task_id, evolve(task, uncertain=(*task.uncertain, step.step_id)))


def _limits_set(world: World, event: budgets.LimitsSet) -> World:
    budget = world.budgets.get(event.budget_id) or Budget(budget_id=event.budget_id)
    # The one UNLIMITED, also after a restart: budgets without limits keep no reservations.
    limits = UNLIMITED if event.limits == UNLIMITED else event.limits
    world = evolve(world, budgets=world.budgets.set(event.budget_id, budget))
    reserved = NOTHING if limits is UNLIMITED else _reserved_now(world, event.budget_id)
    budget = evolve(budget, limits=limits, reserved=reserved)
    return evolve(world, budgets=world.budgets.set(event.budget_id, budget))


def _reserved_now(world: World, name: BudgetId) -> Amounts:
    total = NOTHING
    for agent in world.agents.values():
        step = world.steps[agent.running] if agent.running is not None else None
        if step is not None and name in world.budgets_of(step.task_id, step.agent_id):
            total = total.plus(step.reserved)
    return total


def _spent(world: World, event: budgets.Spent) -> World:
    budget = world.budgets[event.budget_id]
    budget = evolve(budget, spent=budget.spent.plus(event.amounts))
    return evolve(world, budgets=world.budgets.set(event.budget_id, budget))


def _limit_reached(world: World, _: budgets.LimitReached) -> World:
    return world


FOLDS: Final[dict[type, Callable[[World, Any], World]]] = {
    agents.Declared: _declared,
    agents.AgentAdded: _agent_added,
    agents.AgentChanged: _agent_changed,
    agents.AgentRemoved: _agent_removed,
    agents.DutyTaken: _duty_taken,
    agents.Remembered: _remembered,
    threads.ThreadOpened: _thread_opened,
    threads.ThreadClosed: _thread_closed,
    threads.WindowMoved: _window_moved,
    threads.WorkspaceSet: _workspace_set,
    threads.Noticed: _noticed,
    steps.StepQueued: _step_queued,
    steps.StepChanged: _step_changed,
    steps.StepBlocked: _step_blocked,
    steps.StepUnblocked: _step_unblocked,
    steps.StepStarted: _step_started,
    steps.EffectPrepared: _effect_prepared,
    steps.StepCancelling: _step_cancelling,
    steps.StepInterrupted: _step_interrupted,
    steps.StepEnded: _step_ended,
    budgets.LimitsSet: _limits_set,
    budgets.Spent: _spent,
    budgets.LimitReached: _limit_reached,
}
