"""Waiting ids: who waits for whom, how an id comes back, and why nobody waits for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, WaitingId, timer_id
from greenroom.core.base.records import evolve
from greenroom.core.rules.draft import Draft
from greenroom.core.rules.origins import carried
from greenroom.core.rules.queue import enqueue, is_open, open_thread, word_place
from greenroom.core.state.message import MessageSettled, ReleaseWhy, Wait, WaitReleased
from greenroom.core.state.origin import Labels
from greenroom.core.state.step import StepChanged, Work
from greenroom.core.state.timer import Timer, TimerCancelled, TimerSet
from greenroom.core.state.world import World, ordered

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
