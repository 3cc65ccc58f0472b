"""Invariants that must hold after every decision, for any intent, sender and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from greenroom.actors.stage_scheduler import find_changed_tasks, schedule
from greenroom.core.base.amounts import NOTHING, UNLIMITED, Amounts
from greenroom.core.base.ids import TEAM_BUDGET, BudgetId, StepId, TaskId, agent_budget, task_budget, timer_id
from greenroom.core.ports.codec import decode_event, decode_state, encode_event, encode_state
from greenroom.core.ports.log import StoredEvent
from greenroom.core.rules.agents import MAX_MEMORY_CHARS
from greenroom.core.rules.decide import Transition
from greenroom.core.rules.queue import find_touched_agents, next_step
from greenroom.core.state.budget import Budget, LimitsSet
from greenroom.core.state.events import Event
from greenroom.core.state.origin import MAX_NAMES_PER_KIND, merge_labels
from greenroom.core.state.reducer import reduce
from greenroom.core.state.step import Step, StepEnded, StepInterrupted, StepStarted
from greenroom.core.state.team_state import TeamState

RUNNING = ("running", "cancelling")
LIMITED = ("money", "tokens", "steps", "millis", "hops")


def check(before: TeamState, replayed: TeamState, decided: Transition) -> TeamState:
    """Check a decision against all invariants. Return the team state from replaying the log."""
    world = decided.world
    contiguous(before, decided)
    replayed = fold_all(replayed, [through_the_log(event) for event in decided.events])
    assert replayed == world, "replay does not equal live"
    assert decode_state(encode_state(world)) == world, "a snapshot does not equal the world"
    holds(world)
    caps_hold(before, decided)
    nobody_sleeps(before, decided)
    nothing_is_overlooked(before, decided)
    nothing_is_forgotten(before, decided)
    return replayed


def fold_all(world: TeamState, events: Iterable[Event]) -> TeamState:
    """Return the team state after all events."""
    for event in events:
        world = reduce(world, event)
    return world


def contiguous(world: TeamState, decided: Transition) -> None:
    """Nothing starts in a thread between a reply and the results of its native calls."""
    for event in decided.events:
        if isinstance(event, StepStarted):
            step = world.steps[event.step_id]
            between = step.work.call_id is None and world.threads[step.thread_id].open_calls
            assert not between, f"{step.step_id} comes between a reply and the results of its calls"
        world = reduce(world, event)


def through_the_log(event: Event) -> Event:
    """Return the event as read back from the log."""
    new = encode_event(event)
    return decode_event(StoredEvent(version=1, at=new.at, type=new.type, data=new.data))


def holds(world: TeamState) -> None:
    """Check every invariant of a team state."""
    queues(world)
    stages(world)
    threads(world)
    waits(world)
    questions(world)
    budgets(world)
    clocks(world)
    references(world)
    duties(world)
    parts(world)
    knowledge(world)


def knowledge(world: TeamState) -> None:
    """An artifact belongs to an open task and knows all its versions. No memory is newer than the newest, or too long.
    A group talks in an open task."""
    for key, one in world.artifacts.items():
        assert key == f"{one.task_id}/{one.artifact_id}"
        assert one.task_id in world.tasks
        assert len(one.earlier) + 1 == one.version
    for group in world.groups.values():
        assert group.task_id in world.tasks
        assert len(group.participants) > 1
    assert all(len(agent.memory) <= MAX_MEMORY_CHARS for agent in world.agents.values())
    assert all(name == one.memory_id <= world.team.last_memory for name, one in world.memories.items())


def parts(world: TeamState) -> None:
    """A task knows its open child tasks."""
    for name, task in world.tasks.items():
        found = {one.task_id for one in world.tasks.values() if one.parent == name}
        assert set(task.parts) == found, f"{name} has the parts {task.parts}, not {found}"
        assert world.list_subtree(name)[0] == name


def queues(world: TeamState) -> None:
    """Every open step is in exactly one place: running (at most one per agent) or once in its agent's queue."""
    places = Counter(step for agent in world.agents.values() for step in agent.todo)
    places.update(agent.running for agent in world.agents.values() if agent.running is not None)
    assert set(places) == set(world.steps), "a step is lost, or a queue holds a ghost"
    assert not places or max(places.values()) == 1, "a step is in two places"
    for agent in world.agents.values():
        assert all(world.steps[name].agent_id == agent.agent_id for name in agent.todo)
        assert all(world.steps[name].state not in RUNNING for name in agent.todo)
        if agent.running is not None:
            assert world.steps[agent.running].state in RUNNING
    assert all(step.ended_at is None and step.result is None for step in world.steps.values())
    awaited = {(wait.thread_id, wait.call_id) for wait in world.waits.values()}
    for step in world.steps.values():
        if step.state == "pending" and step.work.call_id is not None:
            assert (step.thread_id, step.work.call_id) in awaited, "a call waits for an answer that cannot come"


def stages(world: TeamState) -> None:
    """At most one stage of a task runs, it is the first, and every open stage is listed by its open task."""
    listed = Counter(name for task in world.tasks.values() for name in task.stages)
    assert set(listed) == set(world.stages)
    assert not listed or max(listed.values()) == 1
    for task in world.tasks.values():
        states = [world.stages[name].state for name in task.stages]
        assert states.count("running") <= 1
        assert all(state == "init" for state in states[1:])
        assert all(state in ("init", "running") for state in states)
        assert task.state in ("init", "running", "cancelling")
        assert not task.stages or task.state != "cancelling"
    for stage in world.stages.values():
        assert stage.state == "running" or all(one.state == "init" for one in stage.subtasks)


def threads(world: TeamState) -> None:
    """A thread counts its open steps. A call without steps is over. Nothing is kept for removed records."""
    counted = Counter(step.thread_id for step in world.steps.values())
    calls = Counter(step.thread_id for step in world.steps.values() if step.work.call_id is not None)
    for name, thread in world.threads.items():
        assert thread.open_steps == counted[name], f"{name} counts {thread.open_steps}, not {counted[name]}"
        assert thread.open_calls == calls[name], f"{name} counts {thread.open_calls} calls, not {calls[name]}"
        assert thread.call is None or thread.open_steps
        assert thread.stage_id is None or thread.stage_id in world.stages or thread.open_steps
    for step in world.steps.values():
        thread = world.threads[step.thread_id]
        assert (thread.agent_id, thread.task_id) == (step.agent_id, step.task_id)


def waits(world: TeamState) -> None:
    """Locks and waits correspond. The answer to a wait is still owed, and a wait with a timeout has a timer."""
    locked = Counter((agent.agent_id, name) for agent in world.agents.values() for name in agent.step_lock)
    assert set(locked) == {(wait.waiter, name) for name, wait in world.waits.items()}
    assert not locked or max(locked.values()) == 1
    owed = {step.answers for step in world.steps.values()}
    clocks = set()
    for name, wait in world.waits.items():
        clock = timer_id(name, "wait")
        clocks.add(clock)
        person = world.agents[wait.on].spec.kind == "human"
        assert person or name in owed, f"nobody is going to answer {name}"
        assert not person or wait.message_id in world.mail
        assert person or world.team.waiting_timeout is None or clock in world.timers, f"{name} has no timeout"
    assert clocks >= {name for name, timer in world.timers.items() if timer.purpose == "wait"}


def questions(world: TeamState) -> None:
    """Pending approvals and waiting steps correspond. People are told of them. Steps short of budget are recorded."""
    pending = {one.approval_id for one in world.approvals.values() if one.state == "pending"}
    assert pending == {step.approval for step in world.steps.values() if step.state == "awaiting_approval"}
    for name, approval in world.approvals.items():
        assert approval.state in ("pending", "approved")
        assert world.steps[approval.step_id].approval == name
    ends = {timer_id(world.approvals[one].step_id, "answer"): world.approvals[one].expires_at for one in pending}
    waits = {name: timer.due for name, timer in world.timers.items() if timer.purpose == "answer"}
    assert waits == {name: due for name, due in ends.items() if due is not None}
    asked = [m.data["approval_id"] for m in world.mail.values() if m.data and "approval_id" in m.data]
    assert not {str(one) for one in asked if str(one).count("?") == 1} - set(pending)
    assert world.find_human() is None or pending <= {*asked}, "a step waits for a yes, and nobody knows"
    hungry = {name for name, step in world.steps.items() if step.state == "awaiting_budget"}
    assert set(world.hungry) == hungry


def budgets(world: TeamState) -> None:
    """The reservation under a limit equals the sum of the reservations of running steps."""
    busy = [step for step in world.steps.values() if step.state in RUNNING]
    assert all(step.reserved == NOTHING for step in world.steps.values() if step.state not in RUNNING)
    for name, budget in world.budgets.items():
        mine = [step.reserved for step in busy if name in world.budgets_of(step.task_id, step.agent_id)]
        kept = NOTHING if budget.limits == UNLIMITED else total(mine)
        assert budget.reserved == kept, f"{name} has {budget.reserved} reserved, not {kept}"
        assert (budget.limits is UNLIMITED) == (budget.limits == UNLIMITED)
    for step in world.steps.values():
        assert set(world.budgets_of(step.task_id, step.agent_id)) <= set(world.budgets)


def clocks(world: TeamState) -> None:
    """A clock belongs to a running attempt, and its deadline to that attempt's reserved time."""
    busy = {name: step for name, step in world.steps.items() if step.state in RUNNING}
    assert all(step.until is None for name, step in world.steps.items() if name not in busy)
    for timer in world.timers.values():
        if timer.purpose == "work":
            step = busy[StepId(timer.subject)]
            assert timer.timer_id == timer_id(step.step_id, "work")
            assert timer.due == step.until
    for step in busy.values():
        if step.until is not None and step.started_at is not None:
            assert step.until - step.started_at == step.reserved.millis


def total(amounts: list[Amounts]) -> Amounts:
    found = NOTHING
    for one in amounts:
        found = found.plus(one)
    return found


def references(world: TeamState) -> None:
    """Nothing references a removed agent, task, stage or thread."""
    people = set(world.agents)
    assert not people & set(world.retired)
    for task in world.tasks.values():
        assert set(task.group) <= people
        assert task.manager in task.group
        assert task.parent is None or task.parent in world.tasks, f"{task.task_id} is a part of what is over"
    for step in world.steps.values():
        placed(world, step)
    for wait in world.waits.values():
        assert {wait.on, wait.waiter} <= people
        assert wait.task_id in world.tasks
        assert wait.stage_id is None or wait.stage_id in world.tasks[wait.task_id].stages
    assert set(world.letters) == set(world.mail)
    assert len(set(world.letters.values())) == len(world.letters)
    assert max(world.letters.values(), default=0) <= world.team.letters_made
    assert {one.task_id for one in world.notes.values()} <= set(world.tasks)
    for message in world.mail.values():
        assert {message.sender_id, *message.receiver} <= people
        assert message.task_id in world.tasks
        assert message.need_reply
        assert any(world.agents[name].spec.kind == "human" for name in message.receiver)
        assert set(message.waiting or ()) <= set(world.waits)
    for timer in world.timers.values():
        assert timer.agent_id in (people if timer.purpose == "wait" else world.tasks[timer.task_id].group)
        assert timer.task_id in world.tasks
    for thread in world.threads.values():
        assert thread.agent_id in world.tasks[thread.task_id].group
    for stage in world.stages.values():
        allotted = {one.agent for one in stage.subtasks if one.state in ("init", "running")}
        assert allotted <= set(world.tasks[stage.task_id].group)
    assert all(value.task_id in world.tasks for value in world.values.values())
    shared = {TEAM_BUDGET, *(task_budget(name) for name in world.tasks)} if world.team.team_id else set()
    assert shared <= set(world.budgets) <= shared | {agent_budget(name) for name in people}


def placed(world: TeamState, step: Step) -> None:
    """A step belongs to its agent's group, and to an open stage of its own task unless it is being ended."""
    task = world.tasks[step.task_id]
    assert step.agent_id in task.group
    assert step.stage_id is None or step.stage_id in task.stages or step.state == "cancelling"
    assert task.state != "cancelling" or step.state == "cancelling", f"{step.step_id} keeps a dead task alive"


def duties(world: TeamState) -> None:
    """An agent has only open work, and only where it takes part."""
    for agent in world.agents.values():
        for duty in agent.duties:
            assert agent.agent_id in world.tasks[duty.task_id].group
            assert duty.stage_id is None or duty.stage_id in world.tasks[duty.task_id].stages
        mine: set[TaskId] = {duty.task_id for duty in agent.duties}
        assert mine == {name for name, task in world.tasks.items() if agent.agent_id in task.group}


def caps_hold(before: TeamState, decided: Transition) -> None:
    """No limit is exceeded, or exceeded further after it was lowered below what is spent."""
    lowered = {event.budget_id for event in decided.events if isinstance(event, LimitsSet)}
    for name, budget in decided.world.budgets.items():
        old = before.budgets.get(name, Budget(budget_id=name))
        for amount in LIMITED:
            limit = getattr(budget.limits, amount)
            if limit is None or name in lowered:
                continue
            now, then = (getattr(one.spent, amount) + getattr(one.reserved, amount) for one in (budget, old))
            if amount == "millis":
                then += unclocked(before, decided, name)
            assert now <= max(limit, then), f"{name}: {amount} is {now} of {limit}"


def unclocked(before: TeamState, decided: Transition, name: BudgetId) -> int:
    """Return the working time of steps that started before it was limited. It counts when they end."""
    found = 0
    for event in decided.events:
        step = before.steps.get(event.step_id) if isinstance(event, StepEnded | StepInterrupted) else None
        if step is not None and step.until is None and name in before.budgets_of(step.task_id, step.agent_id):
            found += event.spent.millis if isinstance(event, StepEnded | StepInterrupted) else 0
    return found


def nobody_sleeps(before: TeamState, decided: Transition) -> None:
    """An agent with a new next step is woken. Checking the whole team would wake no other agent."""
    woken = find_touched_agents(decided.world, decided.events)
    for name in decided.world.agents:
        then, now = next_step(before, name), next_step(decided.world, name)
        if now is not None and (then is None or then.step_id != now.step_id):
            assert name in woken, f"{name} could start {now.step_id} and sleeps"


def nothing_is_overlooked(before: TeamState, decided: Transition) -> None:
    """Checking the changed tasks finds everything that became due. Checking the whole team would find no more."""
    world = decided.world
    known = schedule(before, sorted(before.tasks))
    found = schedule(world, find_changed_tasks(world, decided.events))
    for intent in schedule(world, sorted(world.tasks)):
        assert intent in known or intent in found, f"{intent} is due and nobody looks"


def nothing_is_forgotten(before: TeamState, decided: Transition) -> None:
    """A conversation keeps its origins as a few labels, and passes them to every receiver."""
    for name, thread in decided.world.threads.items():
        kinds = Counter(one.partition(":")[0] for one in thread.origins)
        assert max(kinds.values(), default=0) <= MAX_NAMES_PER_KIND
        old = before.threads.get(name)
        if old is not None:
            assert merge_labels(thread.origins, old.origins) is thread.origins, f"{name} has forgotten what it has read"
            assert old.exposed_at in (None, thread.exposed_at)
    for step in decided.world.steps.values():
        read = decided.world.threads[step.thread_id].origins
        assert merge_labels(read, step.origins) is read, f"{step.step_id} brings what its conversation has not read"
