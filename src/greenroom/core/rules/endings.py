"""How steps end: with a result, cancelled, interrupted or in doubt; and what follows from an end."""

from __future__ import annotations

from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import StepId, TaskId, ThreadId, WaitingId
from greenroom.core.base.records import evolve
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, unknown
from greenroom.core.rules.intents import FinishStep, Recover, ReleaseStep
from greenroom.core.rules.queue import enqueue, next_place
from greenroom.core.rules.waits import release, release_where
from greenroom.core.state.approval import ApprovalVoided
from greenroom.core.state.message import MessageSettled
from greenroom.core.state.step import CancelThen, Step, StepCancelling, StepEnd, StepEnded, StepInterrupted
from greenroom.core.state.task import TaskEnded
from greenroom.core.state.team import OwnerChanged
from greenroom.core.state.thread import Noticed, ThreadClosed
from greenroom.core.state.timer import TimerCancelled
from greenroom.core.state.world import World

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
    locks = draft.world.agents[step.agent_id].step_lock
    spent = evolve(intent.spent, steps=1, millis=_worked(draft, step))
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
        )
    )
    if intent.outcome == "uncertain":
        _doubt(draft, step)
    if step.state == "running" or step.then == "requeue":
        _consequences(draft, step, intent)
    _obligation(draft, step, locks)
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
            _notice(draft, step, about, rejected.code, f"{about} was refused. {rejected}")
    if refused:
        _another_go(draft, step)
    draft.cause = None


def _notice(draft: Draft, step: Step, about: str, code: str, text: str) -> None:
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
    thread = draft.world.threads.get(step.thread_id)
    if thread is None or thread.open_steps or step.work.type != "skill" or step.retry >= RETRIES:
        return
    if draft.world.tasks[step.task_id].state == "running":
        enqueue(draft, step.thread_id, step.work, stage=step.stage_id, answers=step.answers, retry=step.retry + 1)


def _obligation(draft: Draft, step: Step, locks: tuple[WaitingId, ...]) -> None:
    """A step that owed an answer: when it asked somebody else first it answers later; else the waiter is let go."""
    owed = step.answers
    if owed is None or not _owes(draft, step):
        return
    agent = draft.world.agents[step.agent_id]
    asked = tuple(one for one in agent.step_lock if one not in locks)
    if asked and step.thread_id in draft.world.threads:
        place = next_place(draft.world, agent)
        enqueue(draft, step.thread_id, step.work, place=place, answers=owed, after=asked, jumped=True)
    else:
        release(draft, owed, "unanswered")


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
    give_up(draft, step, intent.why)
    after_end(draft, step)
    return None


def give_up(draft: Draft, step: Step, why: str) -> None:
    """End an attempt without a result, as its effect class asks."""
    effect = step.terms.effect if step.terms else "pure"
    spent = evolve(step.reserved, millis=_worked(draft, step) if why != RESTART else 0)
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


RESTART = "the process ended"
"""Why an attempt is given up at recovery. Downtime is not working time."""


def _doubt(draft: Draft, step: Step) -> None:
    text = (
        f"Step {step.step_id} ({step.work.executor}) was cut off while it ran. It is uncertain whether it happened. "
        "It was not run again: look first, then decide."
    )
    _notice(draft, step, "", "uncertain", text)
    thread = draft.world.threads.get(step.thread_id)
    if thread is not None and not thread.open_steps and draft.world.tasks[step.task_id].state == "running":
        agent = draft.world.agents[step.agent_id]
        executor = "reflection" if agent.spec.style == "plan" else "converse"
        work = evolve(step.work, type="skill", executor=executor, instruction_content=None, call_id=None)
        enqueue(draft, step.thread_id, evolve(work, text_content=text), stage=step.stage_id)


def recover(draft: Draft, intent: Recover, by: str) -> Verdict:
    """A new owner: whatever ran under the old one is interrupted, in doubt, or (if it was being cancelled) over."""
    if not is_trusted(draft.world, by) or intent.epoch <= draft.world.team.epoch:
        return Rejected(code="stale_epoch", why=f"Epoch {intent.epoch} is not newer than {draft.world.team.epoch}.")
    draft.emit(OwnerChanged(at=draft.now, epoch=intent.epoch, owner=intent.owner))
    interrupt_all(draft, RESTART)
    return None


def interrupt_all(draft: Draft, why: str) -> None:
    """Give up every running attempt of the house."""
    for agent in list(draft.world.agents.values()):
        if agent.running is not None:
            step = draft.world.steps[agent.running]
            give_up(draft, step, why)
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
        )
    )
    if person is not None:
        settle_question(draft, person.approval_id)
    if settle:
        if step.answers is not None and _owes(draft, step):
            release(draft, step.answers, "unanswered")
        after_end(draft, step)


def settle_question(draft: Draft, approval: str) -> None:
    """The person who was asked owes no answer any more."""
    for message in list(draft.world.mail.values()):
        if message.data is not None and message.data.get("approval_id") == approval:
            for receiver in message.receiver:
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
    task = draft.world.tasks.get(thread.task_id)
    over = task is None or task.state == "cancelling"
    if thread.call is not None or over or (thread.stage_id is not None and thread.stage_id not in draft.world.stages):
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
    return [
        step
        for agent in world.tasks[task].group
        if agent in world.agents
        for step in world.steps_of(agent)
        if step.task_id == task
    ]


def end_task_if_dead(draft: Draft, task_id: TaskId) -> None:
    """A task that is ending is over once none of its steps is left."""
    task = draft.world.tasks.get(task_id)
    if task is None or task.ending is None or steps_of_task(draft.world, task_id):
        return
    release_where(draft, "task_over", lambda wait: wait.task_id == task_id)
    for timer in [one for one in draft.world.timers.values() if one.task_id == task_id]:
        draft.emit(TimerCancelled(at=draft.now, timer_id=timer.timer_id))
    for approval in [one for one in draft.world.approvals.values() if one.task_id == task_id]:
        draft.emit(ApprovalVoided(at=draft.now, approval_id=approval.approval_id, why="the task is over"))
    for message in [one for one in draft.world.mail.values() if one.task_id == task_id]:
        for receiver in message.receiver:
            if message.message_id in draft.world.mail:
                draft.emit(MessageSettled(at=draft.now, message_id=message.message_id, agent_id=receiver))
    for thread in [one for one in draft.world.threads.values() if one.task_id == task_id]:
        draft.emit(ThreadClosed(at=draft.now, thread_id=thread.thread_id))
    draft.emit(
        TaskEnded(at=draft.now, task_id=task_id, state=task.ending, summary=task.summary, evidence=task.evidence)
    )
