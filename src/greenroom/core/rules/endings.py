"""How steps end: with a result, cancelled, interrupted or in doubt; and what follows from an end."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, StepId, TaskId, ThreadId
from greenroom.core.base.records import evolve
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, unknown
from greenroom.core.rules.intents import FinishStep, Recover, ReleaseStep
from greenroom.core.rules.queue import enqueue, is_open, next_place
from greenroom.core.rules.waits import release, release_where
from greenroom.core.state.message import Message, MessageSettled
from greenroom.core.state.step import CancelThen, Step, StepCancelling, StepEnd, StepEnded, StepInterrupted
from greenroom.core.state.task import TaskEnded
from greenroom.core.state.team import OwnerChanged
from greenroom.core.state.thread import Noticed, ThreadClosed
from greenroom.core.state.timer import TimerCancelled
from greenroom.core.state.world import World, ordered

RETRIES = 3
"""How often in a row an agent whose consequences were refused is given another go."""


def _running(draft: Draft, name: str, attempt: int, by: str) -> Step | Rejected:
    step = draft.world.steps.get(StepId(name))
    if step is None:
        return unknown("step", name)
    if by != step.agent_id and not is_trusted(draft.world, by):
        return Rejected(code="not_yours", why=f"Step {name!r} belongs to {step.agent_id!r}, not to {by!r}.")
    if step.state not in ("running", "cancelling") or step.attempt != attempt:
        return Rejected(
            code="stale_attempt",
            why=f"Attempt {attempt} of step {name!r} does not run: it is {step.state}, attempt {step.attempt}.",
        )
    return step


def finish_step(draft: Draft, intent: FinishStep, by: str) -> Verdict:
    """Record the result, whatever it asks for; then decide each consequence on its own."""
    step = _running(draft, intent.step_id, intent.attempt, by)
    if isinstance(step, Rejected):
        return step
    draft.locks = draft.world.agents[step.agent_id].step_lock
    # Nobody earns money by saying that a step cost less than nothing.
    told = intent.spent if intent.spent.lowest >= 0 else NOTHING
    spent = evolve(told, steps=1, millis=_worked(draft, step))
    draft.emit(
        StepEnded(
            at=draft.now,
            step_id=step.step_id,
            thread_id=step.thread_id,
            attempt=step.attempt,
            state=intent.outcome,
            result=intent.result,
            error=intent.error,
            spent=spent,
            blobs=intent.blobs,
            queued=step.version,
            previous=draft.world.threads[step.thread_id].last,
            work=step.work if step.changed else None,
        )
    )
    if intent.outcome == "uncertain":
        _doubt(draft, step)
    if step.state == "running" or step.then == "requeue":
        _consequences(draft, step, intent)
    _obligation(draft, step)
    after_end(draft, step)
    return None


def _worked(draft: Draft, step: Step) -> int:
    """Working time; a clock that jumped back gives none."""
    return max(0, draft.now - (step.started_at or draft.now))


def _consequences(draft: Draft, step: Step, intent: FinishStep) -> None:
    refused = False
    draft.cause = step
    for consequence in intent.intents:
        rejected = draft.apply(consequence, step.agent_id)
        if rejected is not None:
            refused = True
            about = type(consequence).__name__
            notice(draft, step, about, rejected.code, f"{about} was refused. {rejected}")
    if refused:
        _another_go(draft, step)
    draft.cause = None


def notice(draft: Draft, step: Step, about: str, code: str, text: str) -> None:
    if step.thread_id in draft.world.threads:
        draft.emit(
            Noticed(
                at=draft.now,
                thread_id=step.thread_id,
                step_id=step.step_id,
                about=about,
                code=code,
                text=text,
            )
        )


def _another_go(draft: Draft, step: Step) -> None:
    """An agent that reads a refusal and has nothing queued is asked once more."""
    if not is_open(draft.world, step.thread_id) or draft.world.threads[step.thread_id].open_steps:
        return
    if step.work.type == "skill" and step.retry < RETRIES:
        _again(draft, step, retry=step.retry + 1)


def _again(draft: Draft, step: Step, retry: int = 0) -> None:
    """The same work once more; when somebody waits for it, next in the queue, after what it has asked for itself."""
    owed = step.answers if step.answers in draft.world.waits else None
    enqueue(
        draft,
        step.thread_id,
        step.work,
        place=None if owed is None else next_place(draft.world, draft.world.agents[step.agent_id]),
        answers=owed,
        after=() if owed is None else draft.asked(step.agent_id),
        stage=step.stage_id,
        jumped=owed is not None,
        retry=retry,
    )


def _obligation(draft: Draft, step: Step) -> None:
    """A step that owed an answer: when it asked somebody else first it answers later; else the waiter is let go."""
    if step.answers is None or not _owes(draft, step):
        return
    if draft.asked(step.agent_id) and is_open(draft.world, step.thread_id):
        _again(draft, step)
    else:
        release(draft, step.answers, "unanswered")


def _owes(draft: Draft, step: Step) -> bool:
    """Whether an answer is still awaited that no other step of the agent is going to give."""
    if step.answers is None or step.answers not in draft.world.waits:
        return False
    return not any(other.answers == step.answers for other in draft.world.steps_of(step.agent_id))


def release_step(draft: Draft, intent: ReleaseStep, by: str) -> Verdict:
    """The effect is dead and there is no result."""
    step = _running(draft, intent.step_id, intent.attempt, by)
    if isinstance(step, Rejected):
        return step
    _give_up(draft, step, intent.why, evolve(step.reserved, millis=_worked(draft, step)))
    after_end(draft, step)
    return None


def _give_up(draft: Draft, step: Step, why: str, spent: Amounts) -> None:
    """End an attempt without a result, as its effect class asks."""
    effect = step.terms.effect if step.terms else "pure"
    if step.state == "cancelling" and step.then == "cancelled":
        partly = " It was running and may have happened in part." if effect == "effectful" else ""
        end_step(draft, step, "cancelled", error=f"Cancelled.{partly}", spent=spent, settle=False)
    elif effect == "effectful":
        error = f"{why}: it is not known whether this happened, so it is not run again."
        end_step(draft, step, "uncertain", error=error, spent=spent, settle=False)
        _doubt(draft, step)
    else:
        draft.emit(StepInterrupted(at=draft.now, step_id=step.step_id, attempt=step.attempt, why=why, spent=spent))
        return
    if step.answers is not None and _owes(draft, step):
        release(draft, step.answers, "unanswered")


def _doubt(draft: Draft, step: Step) -> None:
    text = (
        f"Step {step.step_id} ({step.work.executor}) was cut off while it ran. It is uncertain whether it happened. "
        "It was not run again: look first, then decide."
    )
    notice(draft, step, "", "uncertain", text)
    if is_open(draft.world, step.thread_id) and not draft.world.threads[step.thread_id].open_steps:
        agent = draft.world.agents[step.agent_id]
        executor = "reflection" if agent.spec.style == "plan" else "converse"
        work = evolve(step.work, type="skill", executor=executor, instruction_content=None, call_id=None)
        enqueue(draft, step.thread_id, evolve(work, text_content=text), stage=step.stage_id)


def recover(draft: Draft, intent: Recover, by: str) -> Verdict:
    """A new owner: whatever ran under the old one is interrupted, in doubt, or (if it was being cancelled) over."""
    if not is_trusted(draft.world, by) or intent.epoch <= draft.world.team.epoch:
        return Rejected(code="stale_epoch", why=f"Epoch {intent.epoch} is not newer than {draft.world.team.epoch}.")
    draft.emit(OwnerChanged(at=draft.now, epoch=intent.epoch, owner=intent.owner))
    interrupt_all(draft, "the process ended")
    return None


def interrupt_all(draft: Draft, why: str, *, void: bool = False) -> None:
    """Give up every running attempt of the house. Downtime is not working time.

    What was reserved counts as spent; with `void` nothing does, because another team pays for it.
    """
    for agent in ordered(draft.world.agents):
        if agent.running is not None:
            step = draft.world.steps[agent.running]
            _give_up(draft, step, why, NOTHING if void else evolve(step.reserved, millis=0))
            after_end(draft, step)


def end_step(
    draft: Draft,
    step: Step,
    state: StepEnd,
    *,
    error: str = "",
    spent: Amounts = NOTHING,
    settle: bool = True,
) -> None:
    """The step is over; with `settle`, whoever waited for its answer is let go and its thread may close."""
    person = draft.world.approvals.get(step.approval) if step.approval else None
    draft.emit(
        StepEnded(
            at=draft.now,
            step_id=step.step_id,
            thread_id=step.thread_id,
            attempt=step.attempt,
            state=state,
            error=error,
            spent=spent,
            queued=step.version,
            previous=draft.world.threads[step.thread_id].last,
            work=step.work if step.changed else None,
        )
    )
    if person is not None:
        settle_question(draft, "approval_id", person.approval_id)
    if settle:
        if step.answers is not None and _owes(draft, step):
            release(draft, step.answers, "unanswered")
        after_end(draft, step)


def settle_question(draft: Draft, about: Literal["approval_id", "subtask_id"], name: str) -> None:
    """The person who was asked about this owes no answer any more."""
    for message in ordered(draft.world.mail):
        if message.data is not None and message.data.get(about) == name:
            settle_mail(draft, message, message.receiver)


def settle_mail(draft: Draft, message: Message, receivers: tuple[AgentId, ...]) -> None:
    """These owe no answer to the message any more. It is gone once no person does."""
    for receiver in receivers:
        left = draft.world.mail.get(message.message_id)
        if left is not None and receiver in left.receiver:
            draft.emit(MessageSettled(at=draft.now, message_id=message.message_id, agent_id=receiver))


def after_end(draft: Draft, step: Step) -> None:
    """What an end makes possible: a thread closes, a task that is ending is over."""
    close_if_over(draft, step.thread_id)
    end_task_if_dead(draft, step.task_id)


def close_if_over(draft: Draft, thread_id: ThreadId) -> None:
    """A call is over when it has no steps left; any thread when its stage or task is gone."""
    thread = draft.world.threads.get(thread_id)
    if thread is None or thread.open_steps:
        return
    if thread.call is not None or not is_open(draft.world, thread_id):
        draft.emit(ThreadClosed(at=draft.now, thread_id=thread_id))


def cancel_steps(draft: Draft, steps: list[Step], state: StepEnd, then: CancelThen = "cancelled") -> None:
    """End the waiting ones at once and begin to end the running ones."""
    for step in steps:
        if step.state == "running":
            draft.emit(StepCancelling(at=draft.now, step_id=step.step_id, attempt=step.attempt, then=then))
        elif step.state == "cancelling":
            if then == "cancelled" and step.then != "cancelled":
                draft.emit(StepCancelling(at=draft.now, step_id=step.step_id, attempt=step.attempt, then=then))
        else:
            end_step(draft, step, state, error="not run")


def steps_of_task(world: World, task: TaskId) -> list[Step]:
    """All open steps of the task, of whichever agent of its group."""
    return [step for agent in world.tasks[task].group for step in world.steps_of(agent) if step.task_id == task]


def end_task_if_dead(draft: Draft, task_id: TaskId) -> None:
    """A task that is ending is over once none of its stages and steps is left."""
    task = draft.world.tasks.get(task_id)
    if task is None or task.ending is None or task.stages or steps_of_task(draft.world, task_id):
        return
    release_where(draft, "task_over", lambda wait: wait.task_id == task_id)
    for timer in ordered(draft.world.timers):
        if timer.task_id == task_id:
            draft.emit(TimerCancelled(at=draft.now, timer_id=timer.timer_id))
    for message in ordered(draft.world.mail):
        if message.task_id == task_id:
            settle_mail(draft, message, message.receiver)
    for thread in ordered(draft.world.threads):
        if thread.task_id == task_id:
            draft.emit(ThreadClosed(at=draft.now, thread_id=thread.thread_id))
    draft.emit(
        TaskEnded(at=draft.now, task_id=task_id, state=task.ending, summary=task.summary, evidence=task.evidence)
    )
