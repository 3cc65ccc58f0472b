"""An agent's queue: which step is next, how a step gets into it, what it waits for, and who may be woken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from greenroom.core.base.errors import Rejected
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
from greenroom.core.rules.limits import needed, working_time
from greenroom.core.rules.origins import carried, inherited, taken_along
from greenroom.core.state.agent import Agent
from greenroom.core.state.budget import LimitsSet, room
from greenroom.core.state.events import Event
from greenroom.core.state.message import MessageSent, MessageSettled, ReleaseWhy, Wait, WaitReleased
from greenroom.core.state.origin import Labels
from greenroom.core.state.step import (
    Step,
    StepBlocked,
    StepChanged,
    StepEnded,
    StepInterrupted,
    StepQueued,
    StepStarted,
    StepUnblocked,
    Terms,
    Work,
    lacks_instruction,
)
from greenroom.core.state.task import TaskPaused, TaskResumed, TaskStarted
from greenroom.core.state.team import OwnerChanged, TeamForked, TeamResumed
from greenroom.core.state.thread import Thread, ThreadOpened
from greenroom.core.state.timer import Timer, TimerCancelled, TimerSet
from greenroom.core.state.world import World, ordered


def next_step(world: World, agent_id: AgentId) -> Step | None:
    """The step that may start now: the first in the queue whose thread, task and locks allow it.

    A step that waits (for a person, a budget, its instruction) holds up its own thread, not the agent's other threads.
    A locked agent still answers: steps that owe somebody a reply run. Native calls overtake what else is in their
    thread: nothing comes between a reply and the results of its calls.
    """
    agent = world.agents.get(agent_id)
    if agent is None or agent.running is not None or not agent.todo or world.team.paused is not None:
        return None
    held: set[ThreadId] = set()
    for name in agent.todo:
        step = world.steps[name]
        home = step.thread_id
        if home in held or (step.work.call_id is None and world.threads[home].open_calls):
            continue
        if _may_run(world, agent, step):
            return step
        called = step.work.call_id is not None and step.state == "pending"
        if not called and not (agent.step_lock and step.state == "init"):
            held.add(home)
    return None


def _may_run(world: World, agent: Agent, step: Step) -> bool:
    if step.state != "init" and not (step.state == "awaiting_budget" and _has_room(world, step)):
        return False
    task = world.tasks[step.task_id]
    if not task.runs or (
        task.parent is not None and not all(world.tasks[one].runs for one in world.above(task.task_id))
    ):
        return False
    if step.work.call_id is not None:
        # The calls of one reply go out together and are awaited together, whoever is waited for already.
        return True
    if agent.step_lock and step.answers not in world.waits and not _helps_to_answer(world, agent, step):
        return False
    return not any(waiting in world.waits for waiting in step.after)


def _helps_to_answer(world: World, agent: Agent, step: Step) -> bool:
    """Word came for which an answer was put off: it is read before that answer is given, locked or not."""
    return step.jumped and any(
        other.thread_id == step.thread_id
        and other.answers in world.waits
        and other.after
        and not any(waiting in world.waits for waiting in other.after)
        for other in (world.steps[name] for name in agent.todo)
    )


def _has_room(world: World, step: Step) -> bool:
    """Whether a step that waits for a budget may try again. "Never" counts: trying is how the limit is reported."""
    terms = step.terms or Terms(effect="pure")
    budgets = [world.budgets[name] for name in world.budgets_of(step.task_id, step.agent_id)]
    needs = needed(terms, working_time(budgets, terms))
    return all(room(budget, needs) != "later" for budget in budgets)


def next_place(world: World, agent: Agent) -> int:
    """Where a step goes that jumps the queue: before all others, but behind those that jumped before it."""
    for place in range(len(agent.todo), 0, -1):
        if world.steps[agent.todo[place - 1]].jumped:
            return place
    return 0


def ahead(world: World, agent: Agent, thread: ThreadId, owed: WaitingId | None) -> int:
    """Where a step goes that is to come before the others of its conversation: on the way to an answer that is owed all
    of them have jumped, and it goes before the first of those."""
    for place, name in enumerate(agent.todo if owed is not None else ()):
        step = world.steps[name]
        if (step.thread_id, step.answers) == (thread, owed):
            return place
    return next_place(world, agent)


def word_place(world: World, agent: Agent, waiting: WaitingId) -> int:
    """Where word of this waiting id goes: before what was put off until it comes, else where all go that jump."""
    for place, name in enumerate(agent.todo):
        if waiting in world.steps[name].after:
            return place
    return next_place(world, agent)


def is_open(world: World, name: ThreadId | None) -> bool:
    """Whether anything may still begin in this conversation: neither its stage nor its task is over."""
    thread = world.threads.get(name) if name is not None else None
    if thread is None or world.tasks[thread.task_id].state == "cancelling":
        return False
    return thread.stage_id is None or thread.stage_id in world.stages


def owed_in(draft: Draft, thread: ThreadId) -> WaitingId | None:
    """The answer that the asking step owes: what it queues in its own conversation is on the way to that answer."""
    cause = draft.cause
    if cause is None or cause.thread_id != thread or cause.answers not in draft.world.waits:
        return None
    return cause.answers


def _stage_of(world: World, home: Thread, stage: StageId | None) -> StageId | None:
    """A step belongs to its thread's stage, if that has one, else to `stage` when that is an open one of the task."""
    fits = home.stage_id is None and stage in world.tasks[home.task_id].stages
    return stage if fits else home.stage_id


def _is_awaited(world: World, agent: Agent, thread: ThreadId, work: Work) -> bool:
    """Whether it is a native call whose result is somebody's answer, which has not come yet."""
    waits = (world.waits[name] for name in agent.step_lock) if work.call_id is not None else ()
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
    """Put a step into the queue of the thread's agent (at the end unless told where). Its words are from `origins`."""
    home = draft.world.threads[thread]
    queued = evolve(
        _bare(draft, home, work, place),
        stage_id=_stage_of(draft.world, home, stage),
        message_id=message,
        answers=answers,
        after=after,
        jumped=jumped,
        retry=retry,
        goes_on=goes_on,
        origins=carried(draft, thread, origins),
        on_behalf=on_behalf or taken_along(draft, thread, home.agent_id),
    )
    draft.emit(queued)
    return queued.step_id


def _bare(draft: Draft, home: Thread, work: Work, place: int | None) -> StepQueued:
    """The step as its thread and its work make it."""
    agent = draft.world.agents[home.agent_id]
    return StepQueued(
        at=draft.now,
        step_id=step_id(home.agent_id, agent.steps_made + 1),
        agent_id=home.agent_id,
        thread_id=home.thread_id,
        task_id=home.task_id,
        subtask_id=home.subtask_id,
        work=work,
        place=len(agent.todo) if place is None else place,
        pending=lacks_instruction(work) or _is_awaited(draft.world, agent, home.thread_id, work),
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
    """The agent's thread in this place; opened, on somebody's behalf, when it is new."""
    name = thread_id(agent, call or subtask or task)
    if name not in draft.world.threads:
        draft.emit(
            ThreadOpened(
                at=draft.now,
                thread_id=name,
                agent_id=agent,
                task_id=task,
                stage_id=stage if subtask is not None else None,
                subtask_id=subtask,
                call=call,
                origins=inherited(draft, agent, task),
                on_behalf=tuple(dict.fromkeys(one for one in on_behalf if one != agent)),
            )
        )
    return name


# ---------------------------------------------------------------------- who waits for whom, how an id comes back


_REASONS = {
    "timeout": "did not answer in time",
    "unanswered": "handled the message without answering it",
    "stage_over": "will not answer: the stage is over",
    "task_over": "will not answer: the task is over",
    "agent_gone": "will not answer: the agent was removed",
}


def waits_for(world: World, start: AgentId, goal: AgentId) -> bool:
    """Whether `start` waits for `goal`, directly or through others."""
    seen: set[AgentId] = set()
    todo = [start]
    while todo:
        agent = todo.pop()
        if agent in seen:
            continue
        seen.add(agent)
        for waiting in world.agents[agent].step_lock:
            on = world.waits[waiting].on
            if on == goal:
                return True
            todo.append(on)
    return False


def may_wait(world: World, sender: AgentId, receivers: tuple[AgentId, ...]) -> Rejected | None:
    """A locked agent answers those who wait for it; it may not ask them back, or nobody would ever go on.

    An unlocked agent may ask back once (a clarifying question): the locked one still answers.
    """
    if not world.agents[sender].step_lock:
        return None
    for receiver in receivers:
        if waits_for(world, receiver, sender):
            return Rejected(
                code="wait_cycle",
                why=f"{receiver!r} is waiting for an answer of {sender!r}, which is waiting itself.",
                hint="Answer first; or send the message without waiting.",
            )
    return None


def set_timeout(draft: Draft, wait: Wait, timeout: int | None) -> None:
    """Bound the wait. A person may take as long as they like unless the sender says otherwise."""
    if timeout is None and draft.world.agents[wait.on].spec.kind != "human":
        timeout = draft.world.team.waiting_timeout
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


def release(draft: Draft, waiting: WaitingId, why: ReleaseWhy, *, silent: bool = False) -> None:
    """The id is back, or will never come: then the waiter is told so."""
    wait = draft.world.waits[waiting]
    draft.emit(WaitReleased(at=draft.now, task_id=wait.task_id, waiting_id=waiting, why=why))
    timer = timer_id(waiting, "wait")
    if timer in draft.world.timers:
        draft.emit(TimerCancelled(at=draft.now, timer_id=timer))
    if wait.message_id in draft.world.mail and why != "reply":
        draft.emit(MessageSettled(at=draft.now, message_id=wait.message_id, agent_id=wait.on))
    filled = why != "reply" and fill_call(draft, wait, "error", _said(wait, why))
    if why in _REASONS and not silent and not filled:
        _tell(draft, wait, why)


def _tell(draft: Draft, wait: Wait, why: ReleaseWhy) -> None:
    """A step, next in the queue, in which the waiter reads that no answer comes; none when its work is over too."""
    agent = draft.world.agents[wait.waiter]
    if agent.spec.kind == "human":
        return
    thread = wait.thread_id
    if thread is None or not is_open(draft.world, thread):
        if why == "stage_over" or draft.world.tasks[wait.task_id].state == "cancelling":
            return
        thread = open_thread(draft, wait.waiter, wait.task_id)
    work = Work(
        type="skill",
        executor=reader(agent.spec.style),
        intention="Read a notice.",
        text_content=_said(wait, why),
    )
    place = word_place(draft.world, agent, wait.waiting_id)
    enqueue(draft, thread, work, place=place, jumped=True, goes_on=True)


def _said(wait: Wait, why: ReleaseWhy) -> str:
    return f"{wait.on} {_REASONS.get(why, 'was not waited for')} (message {wait.message_id})."


def fill_call(draft: Draft, wait: Wait, name: Literal["answer", "error"], text: str, origins: Labels = ()) -> bool:
    """Give the native call that waits for this what has come of it; False when none does."""
    if wait.call_id is None:
        return False
    for step in draft.world.steps_of(wait.waiter):
        if step.state == "pending" and (step.thread_id, step.work.call_id) == (wait.thread_id, wait.call_id):
            told = {**(step.work.instruction_content or {}), name: text}
            work = evolve(step.work, instruction_content=told)
            origins = carried(draft, step.thread_id, origins)
            draft.emit(StepChanged(at=draft.now, step_id=step.step_id, work=work, origins=origins))
            return True
    return False


def reader(style: str) -> str:
    """The skill in which an agent of this style takes something in without answering."""
    return "process_message" if style == "plan" else "converse"


def replier(style: str) -> str:
    """The skill in which an agent of this style answers."""
    return "send_message" if style == "plan" else "converse"


def decider(style: str) -> str:
    """The skill in which an agent of this style makes up its mind what to do about something."""
    return "planning" if style == "plan" else "converse"


def release_where(draft: Draft, why: ReleaseWhy, matches: Callable[[Wait], bool]) -> None:
    """Release every wait that `matches`: its stage, task or agent is over."""
    for wait in ordered(draft.world.waits):
        if matches(wait):
            release(draft, wait.waiting_id, why)


# ---------------------------------------------------------------------- who may have something to do after a commit


def touched(world: World, events: Iterable[Event]) -> set[AgentId]:
    """The agents whose next step may have become another one. All that became runnable are among them."""
    found: set[AgentId] = set()
    for event in events:
        look = _LOOKS.get(type(event))
        if look is not None:
            found.update(look(world, event))
    return found


def _own(_: World, event: StepQueued | StepChanged | StepBlocked | StepUnblocked) -> tuple[AgentId, ...]:
    return (agent_of(event.step_id),)


def _over(world: World, event: StepEnded | StepInterrupted | StepStarted) -> tuple[AgentId, ...]:
    return (agent_of(event.step_id), *_hungry(world, event)) if world.hungry else (agent_of(event.step_id),)


def _hungry(world: World, _: object) -> tuple[AgentId, ...]:
    return tuple(agent_of(step) for step in world.hungry)


def _both(_: World, event: WaitReleased) -> tuple[AgentId, ...]:
    """Who waited goes on; whoever was to answer may be locked and have nothing left to answer."""
    return (waiter_of(event.waiting_id), awaited_of(event.waiting_id))


def _sender(_: World, event: MessageSent) -> tuple[AgentId, ...]:
    """Its lock lets other steps through than before."""
    return (event.message.sender_id,)


def _group(world: World, event: TaskResumed | TaskStarted) -> Iterable[AgentId]:
    """Everybody in the task and in what is part of it."""
    return {agent for task in world.below(event.task_id) for agent in world.tasks[task].group}


def _all(world: World, _: object) -> Iterable[AgentId]:
    return world.agents.keys()


_LOOKS: Final[dict[type, Callable[[World, Any], Iterable[AgentId]]]] = {
    StepQueued: _own,
    StepChanged: _own,
    StepBlocked: _own,
    StepUnblocked: _own,
    StepStarted: _over,
    StepEnded: _over,
    StepInterrupted: _over,
    LimitsSet: _hungry,
    WaitReleased: _both,
    MessageSent: _sender,
    TaskResumed: _group,
    TaskStarted: _group,
    TaskPaused: _group,
    TeamResumed: _all,
    OwnerChanged: _all,
    TeamForked: _all,
}
