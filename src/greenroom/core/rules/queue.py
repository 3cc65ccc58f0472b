"""An agent's queue: which step is next, how steps enter it, what they wait for, and which agents may wake."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from greenroom.core.base.errors import Rejection
from greenroom.core.base.ids import (
    AgentId,
    MessageId,
    Principals,
    StageId,
    StepId,
    SubtaskId,
    TaskId,
    ThreadId,
    WaitingId,
    agent_of,
    awaited_of,
    step_id,
    thread_id,
    timer_id,
    waiter_of,
)
from greenroom.core.base.records import evolve
from greenroom.core.rules.draft import Draft
from greenroom.core.rules.limits import compute_reservation, compute_working_time
from greenroom.core.rules.origins import add_read_origins, inherit_origins, list_moved_principals
from greenroom.core.state.agent import AgentState
from greenroom.core.state.budget import LimitsSet, check_room
from greenroom.core.state.events import Event
from greenroom.core.state.message import MessageSent, MessageSettled, ReleaseReason, Wait, WaitReleased
from greenroom.core.state.origin import Labels
from greenroom.core.state.step import (
    Step,
    StepBlocked,
    StepChanged,
    StepEnded,
    StepInterrupted,
    StepQueued,
    StepStarted,
    StepTerms,
    StepUnblocked,
    Work,
    needs_instruction,
)
from greenroom.core.state.task import TaskPaused, TaskResumed, TaskStarted
from greenroom.core.state.team import OwnerChanged, TeamForked, TeamResumed
from greenroom.core.state.team_state import TeamState, sort_rows
from greenroom.core.state.thread import Thread, ThreadOpened
from greenroom.core.state.timer import Timer, TimerCancelled, TimerSet


def next_step(state: TeamState, agent_id: AgentId) -> Step | None:
    """Return the step that may start now: the first in the queue whose thread, task and locks allow it.

    A step that waits (for a person, a budget, its instruction) blocks its own thread, not the agent's other threads. A
    locked agent still runs steps that owe a reply. Native calls overtake the rest of their thread: nothing comes
    between a reply and the results of its calls.
    """
    agent = state.agents.get(agent_id)
    if agent is None or agent.running is not None or not agent.todo or state.team.paused is not None:
        return None
    blocked_threads: set[ThreadId] = set()
    for name in agent.todo:
        step = state.steps[name]
        home = step.thread_id
        if home in blocked_threads or (step.work.call_id is None and state.threads[home].open_calls):
            continue
        if _may_run(state, agent, step):
            return step
        called = step.work.call_id is not None and step.state == "pending"
        if not called and not (agent.step_lock and step.state == "init"):
            blocked_threads.add(home)
    return None


def _may_run(state: TeamState, agent: AgentState, step: Step) -> bool:
    if step.state != "init" and not (step.state == "awaiting_budget" and _has_room(state, step)):
        return False
    task = state.tasks[step.task_id]
    if not task.is_runnable or (
        task.parent is not None
        and not all(state.tasks[parent].is_runnable for parent in state.list_ancestors(task.task_id))
    ):
        return False
    if step.work.call_id is not None:
        # The calls of one reply start together and are awaited together, even if the agent already waits.
        return True
    if agent.step_lock and step.answers not in state.waits and not _is_needed_for_answer(state, agent, step):
        return False
    return not any(waiting in state.waits for waiting in step.after)


def _is_needed_for_answer(state: TeamState, agent: AgentState, step: Step) -> bool:
    """Return whether the step brings information for a postponed answer. It runs before that answer, even if locked."""
    return step.jumped and any(
        other.thread_id == step.thread_id
        and other.answers in state.waits
        and other.after
        and not any(waiting in state.waits for waiting in other.after)
        for other in (state.steps[name] for name in agent.todo)
    )


def _has_room(state: TeamState, step: Step) -> bool:
    """Return whether a step that waits for a budget may try again. "Never" counts: the attempt reports the limit."""
    terms = step.terms or StepTerms(effect="pure")
    budgets = [state.budgets[name] for name in state.budgets_of(step.task_id, step.agent_id)]
    needs = compute_reservation(terms, compute_working_time(budgets, terms))
    return all(check_room(budget, needs) != "later" for budget in budgets)


def find_next_place(state: TeamState, agent: AgentState) -> int:
    """Return the place of a step that jumps the queue: in front, but behind earlier ones that jumped."""
    for place in range(len(agent.todo), 0, -1):
        if state.steps[agent.todo[place - 1]].jumped:
            return place
    return 0


def find_place_in_thread(state: TeamState, agent: AgentState, thread: ThreadId, owed_answer: WaitingId | None) -> int:
    """Return the place before the other steps of a conversation. Steps towards an owed answer have already jumped: it
    goes before the first of them."""
    for place, name in enumerate(agent.todo if owed_answer is not None else ()):
        step = state.steps[name]
        if (step.thread_id, step.answers) == (thread, owed_answer):
            return place
    return find_next_place(state, agent)


def find_place_for_answer(state: TeamState, agent: AgentState, waiting: WaitingId) -> int:
    """Return the place for an awaited answer: before the step postponed until it arrives, else the next place."""
    for place, name in enumerate(agent.todo):
        if waiting in state.steps[name].after:
            return place
    return find_next_place(state, agent)


def has_further_step(state: TeamState, step: Step) -> bool:
    """Return whether another open step of the conversation goes on with the work of this one. A step that answers an
    agent does not: it ends with its answer."""
    return any(
        other.thread_id == step.thread_id and other.step_id != step.step_id and other.answers in (None, step.answers)
        for other in state.steps_of(step.agent_id)
    )


def is_thread_open(state: TeamState, name: ThreadId | None) -> bool:
    """Return whether a step may still start in this conversation: neither its stage nor its task has ended."""
    thread = state.threads.get(name) if name is not None else None
    if thread is None or state.tasks[thread.task_id].state == "cancelling":
        return False
    return thread.stage_id is None or thread.stage_id in state.stages


def find_owed_answer(draft: Draft, thread: ThreadId) -> WaitingId | None:
    """Return the answer that the sending step owes. Steps that it queues in its conversation lead to that answer."""
    cause = draft.cause
    if cause is None or cause.thread_id != thread or cause.answers not in draft.state.waits:
        return None
    return cause.answers


def _choose_stage(state: TeamState, home: Thread, stage: StageId | None) -> StageId | None:
    """Return the thread's stage, else `stage` if it is an open stage of the task."""
    fits = home.stage_id is None and stage in state.tasks[home.task_id].stages
    return stage if fits else home.stage_id


def _is_awaited(state: TeamState, agent: AgentState, thread: ThreadId, work: Work) -> bool:
    """Return whether the work is a native call whose result is an answer that has not arrived yet."""
    waits = (state.waits[name] for name in agent.step_lock) if work.call_id is not None else ()
    return any((wait.thread_id, wait.call_id) == (thread, work.call_id) for wait in waits)


def enqueue(
    draft: Draft,
    thread: ThreadId,
    work: Work,
    *,
    place: int | None = None,
    message: MessageId | None = None,
    answers: WaitingId | None = None,
    after: tuple[WaitingId, ...] = (),
    stage: StageId | None = None,
    jumped: bool = False,
    retry: int = 0,
    goes_on: bool = False,
    origins: Labels = (),
    on_behalf: Principals = (),
) -> StepId:
    """Put a step into the queue of the thread's agent, at the end by default. `origins` labels its text."""
    home = draft.state.threads[thread]
    queued = evolve(
        _build_queued_step(draft, home, work, place),
        stage_id=_choose_stage(draft.state, home, stage),
        message_id=message,
        answers=answers,
        after=after,
        jumped=jumped,
        retry=retry,
        goes_on=goes_on,
        origins=add_read_origins(draft, thread, origins),
        on_behalf=on_behalf or list_moved_principals(draft, thread, home.agent_id),
    )
    draft.emit(queued)
    return queued.step_id


def _build_queued_step(draft: Draft, home: Thread, work: Work, place: int | None) -> StepQueued:
    agent = draft.state.agents[home.agent_id]
    return StepQueued(
        at=draft.now,
        step_id=step_id(home.agent_id, agent.steps_made + 1),
        agent_id=home.agent_id,
        thread_id=home.thread_id,
        task_id=home.task_id,
        subtask_id=home.subtask_id,
        work=work,
        place=len(agent.todo) if place is None else place,
        pending=needs_instruction(work) or _is_awaited(draft.state, agent, home.thread_id, work),
        cause=draft.cause.step_id if draft.cause else None,
    )


def open_thread(
    draft: Draft,
    agent: AgentId,
    task: TaskId,
    *,
    stage: StageId | None = None,
    subtask: SubtaskId | None = None,
    call: str | None = None,
    on_behalf: Principals = (),
) -> ThreadId:
    """Return the agent's thread for a task, subtask or call. Open it, with its principals, if it is new."""
    name = thread_id(agent, call or subtask or task)
    if name not in draft.state.threads:
        draft.emit(
            ThreadOpened(
                at=draft.now,
                thread_id=name,
                agent_id=agent,
                task_id=task,
                stage_id=stage if subtask is not None else None,
                subtask_id=subtask,
                call=call,
                origins=inherit_origins(draft, agent, task),
                on_behalf=tuple(dict.fromkeys(principal for principal in on_behalf if principal != agent)),
            )
        )
    return name


# ---------------------------------------------------------------------- waits and their release


_RELEASE_REASONS = {
    "timeout": "did not answer in time",
    "unanswered": "handled the message without answering it",
    "stage_over": "will not answer: the stage is over",
    "task_over": "will not answer: the task is over",
    "agent_gone": "will not answer: the agent was removed",
}


def is_waiting_for(state: TeamState, start: AgentId, goal: AgentId) -> bool:
    """Return whether `start` waits for `goal`, directly or through other agents."""
    seen: set[AgentId] = set()
    todo = [start]
    while todo:
        agent = todo.pop()
        if agent in seen:
            continue
        seen.add(agent)
        for waiting in state.agents[agent].step_lock:
            on = state.waits[waiting].on
            if on == goal:
                return True
            todo.append(on)
    return False


def check_may_wait(state: TeamState, sender: AgentId, receivers: tuple[AgentId, ...]) -> Rejection | None:
    """Reject a wait that would create a cycle: a locked agent may answer the agents that wait for it, but not ask them.

    An unlocked agent may ask back once (a clarifying question): the locked one still answers.
    """
    if not state.agents[sender].step_lock:
        return None
    for receiver in receivers:
        if is_waiting_for(state, receiver, sender):
            return Rejection(
                code="wait_cycle",
                why=f"{receiver!r} is waiting for an answer of {sender!r}, which is waiting itself.",
                hint="Answer first; or send the message without waiting.",
            )
    return None


def set_timeout(draft: Draft, wait: Wait, timeout: int | None) -> None:
    """Limit a wait. A wait for a person has no limit unless the sender sets one."""
    if timeout is None and draft.state.agents[wait.on].spec.kind != "human":
        timeout = draft.state.team.waiting_timeout
    if timeout is None:
        return
    timer = Timer(
        timer_id=timer_id(wait.waiting_id, "wait"),
        purpose="wait",
        subject=wait.waiting_id,
        due=draft.now + timeout,
        task_id=wait.task_id,
        agent_id=wait.waiter,
    )
    draft.emit(TimerSet(at=draft.now, timer=timer))


def release_wait(draft: Draft, waiting: WaitingId, why: ReleaseReason, *, silent: bool = False) -> None:
    """End a wait. If the reply will never come, notify the waiting agent."""
    wait = draft.state.waits[waiting]
    draft.emit(WaitReleased(at=draft.now, task_id=wait.task_id, waiting_id=waiting, why=why))
    timer = timer_id(waiting, "wait")
    if timer in draft.state.timers:
        draft.emit(TimerCancelled(at=draft.now, timer_id=timer))
    if wait.message_id in draft.state.mail and why != "reply":
        draft.emit(MessageSettled(at=draft.now, message_id=wait.message_id, agent_id=wait.on))
    filled = why != "reply" and fill_call(draft, wait, "error", _describe_release(wait, why))
    if why in _RELEASE_REASONS and not silent and not filled:
        _notify_waiter(draft, wait, why)


def _notify_waiter(draft: Draft, wait: Wait, why: ReleaseReason) -> None:
    """Queue a step, next, in which the waiting agent reads that no answer comes; none if its own work has ended."""
    agent = draft.state.agents[wait.waiter]
    if agent.spec.kind == "human":
        return
    thread = wait.thread_id
    if thread is None or not is_thread_open(draft.state, thread):
        if why == "stage_over" or draft.state.tasks[wait.task_id].state == "cancelling":
            return
        thread = open_thread(draft, wait.waiter, wait.task_id)
    work = Work(
        type="skill",
        executor=choose_reading_skill(agent.spec.style),
        intention="Read a notice.",
        text_content=_describe_release(wait, why),
    )
    place = find_place_for_answer(draft.state, agent, wait.waiting_id)
    enqueue(draft, thread, work, place=place, jumped=True, goes_on=True)


def _describe_release(wait: Wait, why: ReleaseReason) -> str:
    return f"{wait.on} {_RELEASE_REASONS.get(why, 'was not waited for')} (message {wait.message_id})."


def fill_call(draft: Draft, wait: Wait, name: Literal["answer", "error"], text: str, origins: Labels = ()) -> bool:
    """Give the result to the native call that waits for it. Return False if there is none."""
    if wait.call_id is None:
        return False
    for step in draft.state.steps_of(wait.waiter):
        if step.state == "pending" and (step.thread_id, step.work.call_id) == (wait.thread_id, wait.call_id):
            instruction = {**(step.work.instruction_content or {}), name: text}
            work = evolve(step.work, instruction_content=instruction)
            origins = add_read_origins(draft, step.thread_id, origins)
            draft.emit(StepChanged(at=draft.now, step_id=step.step_id, work=work, origins=origins))
            return True
    return False


def choose_reading_skill(style: str) -> str:
    """Return the skill with which an agent of this style reads without answering."""
    return "process_message" if style == "plan" else "converse"


def choose_reply_skill(style: str) -> str:
    """Return the skill with which an agent of this style answers."""
    return "send_message" if style == "plan" else "converse"


def choose_deciding_skill(style: str) -> str:
    """Return the skill with which an agent of this style decides what to do."""
    return "planning" if style == "plan" else "converse"


def release_waits_where(draft: Draft, why: ReleaseReason, matches: Callable[[Wait], bool]) -> None:
    """Release every wait that `matches`, because its stage, task or agent has ended."""
    for wait in sort_rows(draft.state.waits):
        if matches(wait):
            release_wait(draft, wait.waiting_id, why)


# ---------------------------------------------------------------------- agents that may have work after a commit


def find_touched_agents(state: TeamState, events: Iterable[Event]) -> set[AgentId]:
    """Return the agents whose next step may have changed. They include all that became runnable."""
    agents: set[AgentId] = set()
    for event in events:
        find_agents = _AGENT_FINDERS.get(type(event))
        if find_agents is not None:
            agents.update(find_agents(state, event))
    return agents


def _find_step_agent(
    _: TeamState, event: StepQueued | StepChanged | StepBlocked | StepUnblocked
) -> tuple[AgentId, ...]:
    return (agent_of(event.step_id),)


def _find_agents_after_step(state: TeamState, event: StepEnded | StepInterrupted | StepStarted) -> tuple[AgentId, ...]:
    if state.awaiting_budget:
        return (agent_of(event.step_id), *_find_agents_awaiting_budget(state, event))
    return (agent_of(event.step_id),)


def _find_agents_awaiting_budget(state: TeamState, _: object) -> tuple[AgentId, ...]:
    return tuple(agent_of(step) for step in state.awaiting_budget)


def _find_wait_agents(_: TeamState, event: WaitReleased) -> tuple[AgentId, ...]:
    """The waiting agent continues. The awaited agent may be locked and have nothing left to answer."""
    return (waiter_of(event.waiting_id), awaited_of(event.waiting_id))


def _find_sender(_: TeamState, event: MessageSent) -> tuple[AgentId, ...]:
    """The sender's lock now lets other steps run."""
    return (event.message.sender_id,)


def _find_task_agents(state: TeamState, event: TaskResumed | TaskStarted) -> Iterable[AgentId]:
    """Return all agents in the task and in the tasks below it."""
    return {agent for task in state.list_subtree(event.task_id) for agent in state.tasks[task].group}


def _find_all_agents(state: TeamState, _: object) -> Iterable[AgentId]:
    return state.agents.keys()


_AGENT_FINDERS: Final[dict[type, Callable[[TeamState, Any], Iterable[AgentId]]]] = {
    StepQueued: _find_step_agent,
    StepChanged: _find_step_agent,
    StepBlocked: _find_step_agent,
    StepUnblocked: _find_step_agent,
    StepStarted: _find_agents_after_step,
    StepEnded: _find_agents_after_step,
    StepInterrupted: _find_agents_after_step,
    LimitsSet: _find_agents_awaiting_budget,
    WaitReleased: _find_wait_agents,
    MessageSent: _find_sender,
    TaskResumed: _find_task_agents,
    TaskStarted: _find_task_agents,
    TaskPaused: _find_task_agents,
    TeamResumed: _find_all_agents,
    OwnerChanged: _find_all_agents,
    TeamForked: _find_all_agents,
}
