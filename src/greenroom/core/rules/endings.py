"""How steps end: with a result, cancelled, interrupted or in doubt; and what follows from an end."""

from __future__ import annotations

from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import Rejected
from greenroom.core.base.records import evolve
from greenroom.core.rules.closing import (
    abandon,
    after_end,
    emit_end,
    end_step,
    notice,
    owes,
    react,
    stop_clock,
    to_fill,
    unanswered,
)
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, own_step
from greenroom.core.rules.intents import FinishStep, Recover, ReleaseStep
from greenroom.core.rules.limits import time_limit
from greenroom.core.rules.origins import share
from greenroom.core.rules.queue import enqueue, is_open, next_place
from greenroom.core.rules.waits import release, replier
from greenroom.core.state.step import Step, StepInterrupted
from greenroom.core.state.task import TaskPaused
from greenroom.core.state.team import OwnerChanged
from greenroom.core.state.world import ordered

RETRIES = 3
"""How often in a row an agent whose consequences were refused is given another go."""


def running(draft: Draft, name: str, attempt: int, by: str) -> Step | Rejected:
    """The step of which this attempt runs, or is being ended, and which the asker may speak of."""
    step = own_step(draft.world, name, by)
    if isinstance(step, Rejected):
        return step
    if step.state not in ("running", "cancelling") or step.attempt != attempt:
        return stale(step, attempt)
    return step


def is_cancelled(step: Step) -> bool:
    """Whether somebody wants it to be over, whatever comes of it."""
    return step.state == "cancelling" and step.then == "cancelled"


def stale(step: Step, attempt: int) -> Rejected:
    """What is said about an attempt is of no interest any more."""
    return Rejected(
        code="stale_attempt",
        why=f"Attempt {attempt} of step {step.step_id!r} does not run: it is {step.state}, attempt {step.attempt}.",
    )


def finish_step(draft: Draft, intent: FinishStep, by: str) -> Verdict:
    """Record the result, whatever it asks for; then decide each consequence on its own."""
    step = running(draft, intent.step_id, intent.attempt, by)
    if isinstance(step, Rejected):
        return step
    if intent.outcome == "cancelled" and not is_cancelled(step):
        return Rejected(code="not_cancelled", why=f"Nobody has cancelled step {step.step_id!r}.")
    draft.locks = draft.world.agents[step.agent_id].step_lock
    tool = to_fill(draft.world, step)
    # Nobody earns money by saying that a step cost less than nothing.
    told = intent.spent if intent.spent.lowest >= 0 else NOTHING
    spent = evolve(told, steps=1, millis=_worked(step, draft.now))
    emit_end(
        draft,
        step,
        intent.outcome,
        result=intent.result,
        error=intent.error,
        spent=spent,
        blobs=intent.blobs,
        origins=intent.origins,
    )
    if intent.outcome == "uncertain":
        _doubt(draft, step)
    if not is_cancelled(step):
        _consequences(draft, step, intent)
    if tool is not None:
        abandon(draft, tool, step)
    if step.answers is not None:
        _obligation(draft, step)
    after_end(draft, step)
    return None


def _worked(step: Step, now: int) -> int:
    """Working time: until its end where it has one, and none by a clock that jumped back."""
    end = now if step.until is None else min(now, step.until)
    return 0 if step.started_at is None else max(0, end - step.started_at)


def _consequences(draft: Draft, step: Step, intent: FinishStep) -> None:
    refused, begin = False, len(draft.events)
    draft.cause = evolve(step, blobs=intent.blobs) if intent.blobs else step
    draft.read = draft.world.threads[step.thread_id].origins
    for consequence in intent.intents:
        rejected = draft.apply(consequence, step.agent_id)
        if rejected is not None:
            refused = True
            about = type(consequence).__name__
            notice(draft, step, about, rejected.code, f"{about} was refused. {rejected}")
    if refused:
        _another_go(draft, step)
    share(draft, begin)
    draft.cause, draft.read = None, ()


def _another_go(draft: Draft, step: Step) -> None:
    """An agent that reads a refusal and has nothing queued is asked once more."""
    if not is_open(draft.world, step.thread_id) or draft.world.threads[step.thread_id].open_steps:
        return
    if step.work.type == "skill" and step.retry < RETRIES:
        _again(draft, step, retry=step.retry + 1)


def _again(draft: Draft, step: Step, retry: int = 0) -> None:
    """The same work once more; when somebody waits for it, next in the queue, after what it has asked for itself.

    A tool has been called and is not called again, nor is a call answered twice: what is left is to answer.
    """
    owed = step.answers if step.answers in draft.world.waits else None
    agent = draft.world.agents[step.agent_id]
    work = evolve(step.work, call_id=None)
    if work.type == "tool":
        text = f"Answer now what you were asked.\n<return_waiting_id>{owed}</return_waiting_id>"
        executor = replier(agent.spec.style)
        work = evolve(work, type="skill", executor=executor, text_content=text, instruction_content=None)
    enqueue(
        draft,
        step.thread_id,
        work,
        place=None if owed is None else next_place(draft.world, agent),
        message=step.message_id,
        answers=owed,
        after=() if owed is None else draft.asked(step.agent_id),
        stage=step.stage_id,
        jumped=owed is not None,
        retry=retry,
        goes_on=True,
    )


def _obligation(draft: Draft, step: Step) -> None:
    """A step that owed an answer: when it asked somebody else first it answers later; else the waiter is let go."""
    if step.answers is None or not owes(draft, step):
        return
    if draft.asked(step.agent_id) and is_open(draft.world, step.thread_id):
        _again(draft, step)
    else:
        release(draft, step.answers, "unanswered")


def release_step(draft: Draft, intent: ReleaseStep, by: str) -> Verdict:
    """The effect is dead and there is no result."""
    step = running(draft, intent.step_id, intent.attempt, by)
    if isinstance(step, Rejected):
        return step
    told = intent.spent if intent.spent is not None and intent.spent.lowest >= 0 else step.reserved
    _give_up(draft, step, intent.why, evolve(told, millis=_worked(step, draft.now)), ran=intent.ran)
    after_end(draft, step)
    task = draft.world.tasks.get(step.task_id)
    if intent.pause and task is not None and task.runs:
        draft.emit(TaskPaused(at=draft.now, task_id=step.task_id, why=f"provider: {intent.why}"))
    return None


def _give_up(draft: Draft, step: Step, why: str, spent: Amounts, *, ran: bool = True) -> None:
    """End an attempt without a result, as its effect class asks; one that never began has touched nothing."""
    effect = step.terms.effect if step.terms and ran else "pure"
    then = step.then if step.state == "cancelling" else None
    tool = to_fill(draft.world, step)
    if then == "out_of_time":
        why = _out_of_time(draft, step)
    if then == "cancelled":
        partly = " It was running and may have happened in part." if effect == "effectful" else ""
        end_step(draft, step, "cancelled", error=f"Cancelled.{partly}", spent=spent, settle=False)
    elif effect == "effectful":
        error = f"{why}: it is not known whether this happened, so it is not run again."
        end_step(draft, step, "uncertain", error=error, spent=spent, settle=False)
        _doubt(draft, step)
    elif then == "out_of_time":
        end_step(draft, step, "failed", error=f"{why}.", spent=spent, settle=False)
        react(draft, step, "out_of_time", f"Step {step.step_id} ({step.work.executor}) was stopped. {why}.")
    else:
        stop_clock(draft, step)
        draft.emit(StepInterrupted(at=draft.now, step_id=step.step_id, attempt=step.attempt, why=why, spent=spent))
        return
    abandon(draft, tool, step)
    unanswered(draft, step)


def _out_of_time(draft: Draft, step: Step) -> str:
    limit = time_limit(draft.world, step)
    under = f" under the limit millis of {limit!r}" if limit is not None else ""
    return f"Its working time is over: it had {step.reserved.millis} ms{under}"


def _doubt(draft: Draft, step: Step) -> None:
    text = (
        f"Step {step.step_id} ({step.work.executor}) was cut off while it ran. It is uncertain whether it happened. "
        "It was not run again: look first, then decide."
    )
    react(draft, step, "uncertain", text)


def recover(draft: Draft, intent: Recover, by: str) -> Verdict:
    """A new owner: whatever ran under the old one is interrupted, in doubt, or (if it was being cancelled) over."""
    if not is_trusted(draft.world, by) or intent.epoch <= draft.world.team.epoch:
        return Rejected(code="stale_epoch", why=f"Epoch {intent.epoch} is not newer than {draft.world.team.epoch}.")
    last = draft.world.at
    draft.emit(OwnerChanged(at=draft.now, epoch=intent.epoch, owner=intent.owner))
    interrupt_all(draft, "the process ended", last)
    return None


def interrupt_all(draft: Draft, why: str, last: int | None) -> None:
    """Give up every running attempt of the house.

    What was reserved counts as spent, and the time until `last`, when the old owner was last heard of: downtime is not
    working time. Without `last` nothing is spent, because another team pays for it.
    """
    for agent in ordered(draft.world.agents):
        if agent.running is not None:
            step = draft.world.steps[agent.running]
            spent = NOTHING if last is None else evolve(step.reserved, millis=_worked(step, last))
            _give_up(draft, step, why, spent)
            after_end(draft, step)
