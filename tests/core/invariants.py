"""Invariants that must hold after every decision, for any intent, sender and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from greenroom.actors.stage_scheduler import find_changed_tasks, schedule
from greenroom.core.base.amounts import NOTHING, UNLIMITED, Amounts
from greenroom.core.base.ids import (
    TEAM_BUDGET,
    BudgetId,
    StepId,
    SubtaskId,
    TaskId,
    agent_budget,
    task_budget,
    timer_id,
)
from greenroom.core.base.records import evolve
from greenroom.core.ports.codec import decode_event, decode_state, encode_event, encode_state
from greenroom.core.ports.log import StoredEvent
from greenroom.core.rules.agents import MAX_MEMORY_CHARS
from greenroom.core.rules.decide import Transition
from greenroom.core.rules.queue import find_touched_agents, next_step
from greenroom.core.state.budget import Budget, LimitsSet
from greenroom.core.state.events import Event
from greenroom.core.state.origin import MAX_NAMES_PER_KIND, merge_labels
from greenroom.core.state.reducer import reduce
from greenroom.core.state.stage import Stage, StageReplanned, SubtaskAssigned
from greenroom.core.state.step import Step, StepEnded, StepInterrupted, StepStarted
from greenroom.core.state.team_state import TeamState

RUNNING = ("running", "cancelling")
LIMITED = ("money", "tokens", "steps", "millis", "hops")


def check(before: TeamState, replayed: TeamState, decided: Transition) -> TeamState:
    """Check a decision against all invariants. Return the team state from replaying the log."""
    state = decided.state
    contiguous(before, decided)
    replayed = fold_all(replayed, [through_the_log(event) for event in decided.events])
    assert replayed == state, "replay does not equal live"
    assert decode_state(encode_state(state)) == state, "a snapshot does not equal the world"
    holds(state)
    caps_hold(before, decided)
    nobody_sleeps(before, decided)
    nothing_is_overlooked(before, decided)
    subtasks_start_in_turn(before, decided)
    every_subtask_ends(decided)
    nothing_is_forgotten(before, decided)
    return replayed


def fold_all(state: TeamState, events: Iterable[Event]) -> TeamState:
    """Return the team state after all events."""
    for event in events:
        state = reduce(state, event)
    return state


def contiguous(state: TeamState, decided: Transition) -> None:
    """Nothing starts in a thread between a reply and the results of its native calls."""
    for event in decided.events:
        if isinstance(event, StepStarted):
            step = state.steps[event.step_id]
            between = step.work.call_id is None and state.threads[step.thread_id].open_calls
            assert not between, f"{step.step_id} comes between a reply and the results of its calls"
        state = reduce(state, event)


def through_the_log(event: Event) -> Event:
    """Return the event as read back from the log."""
    new = encode_event(event)
    return decode_event(StoredEvent(version=1, at=new.at, type=new.type, data=new.data))


def holds(state: TeamState) -> None:
    """Check every invariant of a team state."""
    queues(state)
    stages(state)
    threads(state)
    waits(state)
    questions(state)
    budgets(state)
    clocks(state)
    references(state)
    duties(state)
    parts(state)
    knowledge(state)


def knowledge(state: TeamState) -> None:
    """An artifact belongs to an open task and knows all its versions. No memory is newer than the newest, or too long.
    A group talks in an open task."""
    for key, one in state.artifacts.items():
        assert key == f"{one.task_id}/{one.artifact_id}"
        assert one.task_id in state.tasks
        assert len(one.earlier) + 1 == one.version
    for group in state.groups.values():
        assert group.task_id in state.tasks
        assert len(group.participants) > 1
    assert all(len(agent.memory) <= MAX_MEMORY_CHARS for agent in state.agents.values())
    assert all(name == one.memory_id <= state.team.last_memory for name, one in state.memories.items())


def parts(state: TeamState) -> None:
    """A task knows its open child tasks."""
    for name, task in state.tasks.items():
        found = {one.task_id for one in state.tasks.values() if one.parent == name}
        assert set(task.parts) == found, f"{name} has the parts {task.parts}, not {found}"
        assert state.list_subtree(name)[0] == name


def queues(state: TeamState) -> None:
    """Every open step is in exactly one place: running (at most one per agent) or once in its agent's queue."""
    places = Counter(step for agent in state.agents.values() for step in agent.todo)
    places.update(agent.running for agent in state.agents.values() if agent.running is not None)
    assert set(places) == set(state.steps), "a step is lost, or a queue holds a ghost"
    assert not places or max(places.values()) == 1, "a step is in two places"
    for agent in state.agents.values():
        assert all(state.steps[name].agent_id == agent.agent_id for name in agent.todo)
        assert all(state.steps[name].state not in RUNNING for name in agent.todo)
        if agent.running is not None:
            assert state.steps[agent.running].state in RUNNING
    assert all(step.ended_at is None and step.result is None for step in state.steps.values())
    awaited = {(wait.thread_id, wait.call_id) for wait in state.waits.values()}
    for step in state.steps.values():
        if step.state == "pending" and step.work.call_id is not None:
            assert (step.thread_id, step.work.call_id) in awaited, "a call waits for an answer that cannot come"


def stages(state: TeamState) -> None:
    """At most one stage of a task runs, it is the first, and every open stage is listed by its open task."""
    listed = Counter(name for task in state.tasks.values() for name in task.stages)
    assert set(listed) == set(state.stages)
    assert not listed or max(listed.values()) == 1
    for task in state.tasks.values():
        states = [state.stages[name].state for name in task.stages]
        assert states.count("running") <= 1
        assert all(state_name == "init" for state_name in states[1:])
        assert all(state_name in ("init", "running") for state_name in states)
        assert task.state in ("init", "running", "cancelling")
        assert not task.stages or task.state != "cancelling"
    for stage in state.stages.values():
        assert stage.state == "running" or all(one.state == "init" for one in stage.subtasks)
        ids = {one.subtask_id for one in stage.subtasks}
        assert all(set(one.needs) <= ids for one in stage.subtasks)
        assert {one.agent for one in stage.subtasks} <= {one.agent_id for one in stage.members}


def threads(state: TeamState) -> None:
    """A thread counts its open steps. A call without steps is over. Nothing is kept for removed records."""
    counted = Counter(step.thread_id for step in state.steps.values())
    calls = Counter(step.thread_id for step in state.steps.values() if step.work.call_id is not None)
    for name, thread in state.threads.items():
        assert thread.open_steps == counted[name], f"{name} counts {thread.open_steps}, not {counted[name]}"
        assert thread.open_calls == calls[name], f"{name} counts {thread.open_calls} calls, not {calls[name]}"
        assert thread.call is None or thread.open_steps
        assert thread.stage_id is None or thread.stage_id in state.stages or thread.open_steps
    for step in state.steps.values():
        thread = state.threads[step.thread_id]
        assert (thread.agent_id, thread.task_id) == (step.agent_id, step.task_id)


def waits(state: TeamState) -> None:
    """Locks and waits correspond. The answer to a wait is still owed, and a wait with a timeout has a timer."""
    locked = Counter((agent.agent_id, name) for agent in state.agents.values() for name in agent.step_lock)
    assert set(locked) == {(wait.waiter, name) for name, wait in state.waits.items()}
    assert not locked or max(locked.values()) == 1
    owed = {step.answers for step in state.steps.values()}
    clocks = set()
    for name, wait in state.waits.items():
        clock = timer_id(name, "wait")
        clocks.add(clock)
        person = state.agents[wait.on].spec.kind == "human"
        assert person or name in owed, f"nobody is going to answer {name}"
        assert not person or wait.message_id in state.mail
        assert person or state.team.waiting_timeout is None or clock in state.timers, f"{name} has no timeout"
    assert clocks >= {name for name, timer in state.timers.items() if timer.purpose == "wait"}


def questions(state: TeamState) -> None:
    """Pending approvals and waiting steps correspond. People are told of them. Steps short of budget are recorded."""
    pending = {one.approval_id for one in state.approvals.values() if one.state == "pending"}
    assert pending == {step.approval for step in state.steps.values() if step.state == "awaiting_approval"}
    for name, approval in state.approvals.items():
        assert approval.state in ("pending", "approved")
        assert state.steps[approval.step_id].approval == name
    ends = {timer_id(state.approvals[one].step_id, "answer"): state.approvals[one].expires_at for one in pending}
    waits = {name: timer.due for name, timer in state.timers.items() if timer.purpose == "answer"}
    assert waits == {name: due for name, due in ends.items() if due is not None}
    asked = [m.data["approval_id"] for m in state.mail.values() if m.data and "approval_id" in m.data]
    assert not {str(one) for one in asked if str(one).count("?") == 1} - set(pending)
    assert state.find_human() is None or pending <= {*asked}, "a step waits for a yes, and nobody knows"
    awaiting_budget = {name for name, step in state.steps.items() if step.state == "awaiting_budget"}
    assert set(state.awaiting_budget) == awaiting_budget


def budgets(state: TeamState) -> None:
    """The reservation under a limit equals the sum of the reservations of running steps."""
    busy = [step for step in state.steps.values() if step.state in RUNNING]
    assert all(step.reserved == NOTHING for step in state.steps.values() if step.state not in RUNNING)
    for name, budget in state.budgets.items():
        mine = [step.reserved for step in busy if name in state.budgets_of(step.task_id, step.agent_id)]
        kept = NOTHING if budget.limits == UNLIMITED else total(mine)
        assert budget.reserved == kept, f"{name} has {budget.reserved} reserved, not {kept}"
        assert (budget.limits is UNLIMITED) == (budget.limits == UNLIMITED)
    for step in state.steps.values():
        assert set(state.budgets_of(step.task_id, step.agent_id)) <= set(state.budgets)


def clocks(state: TeamState) -> None:
    """A clock belongs to a running attempt, and its deadline to that attempt's reserved time."""
    busy = {name: step for name, step in state.steps.items() if step.state in RUNNING}
    assert all(step.until is None for name, step in state.steps.items() if name not in busy)
    for timer in state.timers.values():
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


def references(state: TeamState) -> None:
    """Nothing references a removed agent, task, stage or thread."""
    people = set(state.agents)
    assert not people & set(state.retired)
    for task in state.tasks.values():
        assert set(task.group) <= people
        assert task.manager in task.group
        assert task.parent is None or task.parent in state.tasks, f"{task.task_id} is a part of what is over"
    for step in state.steps.values():
        placed(state, step)
    for wait in state.waits.values():
        assert {wait.on, wait.waiter} <= people
        assert wait.task_id in state.tasks
        assert wait.stage_id is None or wait.stage_id in state.tasks[wait.task_id].stages
    assert set(state.letters) == set(state.mail)
    assert len(set(state.letters.values())) == len(state.letters)
    assert max(state.letters.values(), default=0) <= state.team.letters_made
    assert {one.task_id for one in state.notes.values()} <= set(state.tasks)
    for message in state.mail.values():
        assert {message.sender_id, *message.receiver} <= people
        assert message.task_id in state.tasks
        assert message.need_reply
        assert any(state.agents[name].spec.kind == "human" for name in message.receiver)
        assert set(message.waiting or ()) <= set(state.waits)
    for timer in state.timers.values():
        assert timer.agent_id in (people if timer.purpose == "wait" else state.tasks[timer.task_id].group)
        assert timer.task_id in state.tasks
    for thread in state.threads.values():
        assert thread.agent_id in state.tasks[thread.task_id].group
    for stage in state.stages.values():
        allotted = {one.agent for one in stage.subtasks if one.state in ("init", "running")}
        assert allotted <= set(state.tasks[stage.task_id].group)
    assert all(value.task_id in state.tasks for value in state.values.values())
    shared = {TEAM_BUDGET, *(task_budget(name) for name in state.tasks)} if state.team.team_id else set()
    assert shared <= set(state.budgets) <= shared | {agent_budget(name) for name in people}


def placed(state: TeamState, step: Step) -> None:
    """A step belongs to its agent's group, and to an open stage of its own task unless it is being ended."""
    task = state.tasks[step.task_id]
    assert step.agent_id in task.group
    assert step.stage_id is None or step.stage_id in task.stages or step.state == "cancelling"
    assert task.state != "cancelling" or step.state == "cancelling", f"{step.step_id} keeps a dead task alive"


def duties(state: TeamState) -> None:
    """An agent has only open work, and only where it takes part."""
    for agent in state.agents.values():
        for duty in agent.duties:
            assert agent.agent_id in state.tasks[duty.task_id].group
            assert duty.stage_id is None or duty.stage_id in state.tasks[duty.task_id].stages
        mine: set[TaskId] = {duty.task_id for duty in agent.duties}
        assert mine == {name for name, task in state.tasks.items() if agent.agent_id in task.group}


def caps_hold(before: TeamState, decided: Transition) -> None:
    """No limit is exceeded, or exceeded further after it was lowered below what is spent."""
    lowered = {event.budget_id for event in decided.events if isinstance(event, LimitsSet)}
    for name, budget in decided.state.budgets.items():
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
    woken = find_touched_agents(decided.state, decided.events)
    for name in decided.state.agents:
        then, now = next_step(before, name), next_step(decided.state, name)
        if now is not None and (then is None or then.step_id != now.step_id):
            assert name in woken, f"{name} could start {now.step_id} and sleeps"


def nothing_is_overlooked(before: TeamState, decided: Transition) -> None:
    """Checking the changed tasks finds everything that became due. Checking the whole team would find no more."""
    state = decided.state
    known = schedule(before, sorted(before.tasks))
    found = schedule(state, find_changed_tasks(state, decided.events))
    for intent in schedule(state, sorted(state.tasks)):
        assert intent in known or intent in found, f"{intent} is due and nobody looks"


def subtasks_start_in_turn(state: TeamState, decided: Transition) -> None:
    """A subtask starts after what it needs and within the limits. A new plan loses nothing, and no id is used twice."""
    for event in decided.events:
        old = state.stages.get(event.stage_id) if isinstance(event, SubtaskAssigned | StageReplanned) else None
        state = reduce(state, event)
        if isinstance(event, SubtaskAssigned):
            within_the_limits(state, state.stages[event.stage_id], event.subtask_id)
        elif isinstance(event, StageReplanned):
            assert old is not None
            kept = {one.subtask_id: evolve(one, needs=()) for one in event.subtasks if one.state != "init"}
            past = {one.subtask_id: evolve(one, needs=()) for one in old.subtasks if one.state != "init"}
            again = {one.subtask_id for one in event.subtasks if one.state == "init"} & set(past)
            assert {past[name].state for name in again} <= {"failed", "skipped"}, "only these wait again"
            assert kept == {name: one for name, one in past.items() if name not in again}
            known = {one.subtask_id for one in old.subtasks}
            made = [int(one.subtask_id.rpartition(".")[2]) for one in event.subtasks if one.subtask_id not in known]
            assert sorted(made) == list(range(old.subtasks_made + 1, state.stages[event.stage_id].subtasks_made + 1))


def within_the_limits(state: TeamState, stage: Stage, started: SubtaskId) -> None:
    """Check the limits of the stage and of the agent's type, and that what was needed is done."""
    subtask = stage.find_subtask(started)
    assert subtask is not None
    needs = {one.state for one in stage.subtasks if one.subtask_id in subtask.needs}
    assert needs <= ({"finished", "failed", "skipped", "cancelled"} if subtask.anyway else {"finished"})
    assert subtask.attempt <= subtask.tries
    specs = [state.agents[one.agent].spec for one in stage.subtasks if one.state == "running"]
    counted = [spec for spec in specs if spec.kind != "system"]
    own = state.agents[subtask.agent].spec
    if own.kind != "system":
        assert not stage.concurrency or len(counted) <= stage.concurrency
        most = own.cooperation.concurrency if own.cooperation is not None else 0
        assert not most or sum(spec.name == own.name for spec in counted) <= most


def every_subtask_ends(decided: Transition) -> None:
    """A stage that has ended has no open subtask."""
    for _, row in decided.archived:
        if isinstance(row.record, Stage):
            assert all(one.state not in ("init", "running") for one in row.record.subtasks)


def nothing_is_forgotten(before: TeamState, decided: Transition) -> None:
    """A conversation keeps its origins as a few labels, and passes them to every receiver."""
    for name, thread in decided.state.threads.items():
        kinds = Counter(one.partition(":")[0] for one in thread.origins)
        assert max(kinds.values(), default=0) <= MAX_NAMES_PER_KIND
        old = before.threads.get(name)
        if old is not None:
            assert merge_labels(thread.origins, old.origins) is thread.origins, f"{name} has forgotten what it has read"
            assert old.exposed_at in (None, thread.exposed_at)
    for step in decided.state.steps.values():
        read = decided.state.threads[step.thread_id].origins
        assert merge_labels(read, step.origins) is read, f"{step.step_id} brings what its conversation has not read"
