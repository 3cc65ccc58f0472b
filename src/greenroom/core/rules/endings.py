"""How steps end (with a result, cancelled, interrupted, in doubt), what an end closes, and what follows from it."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, StepId, TaskId, ThreadId, timer_id
from greenroom.core.base.records import Data, evolve
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, own_step, unknown
from greenroom.core.rules.intents import FinishStep, Interrupt, Recover, ReleaseStep
from greenroom.core.rules.limits import time_limit
from greenroom.core.rules.origins import share
from greenroom.core.rules.queue import enqueue, is_open, next_place, release, release_where, replier
from greenroom.core.state.message import Message, MessageSettled
from greenroom.core.state.origin import merged
from greenroom.core.state.step import (
    SIDE_EFFECTS,
    CancelThen,
    Effect,
    Step,
    StepCancelling,
    StepEnd,
    StepEnded,
    StepInterrupted,
)
from greenroom.core.state.task import TaskEnded, TaskPaused
from greenroom.core.state.team import OwnerChanged
from greenroom.core.state.thread import Noticed, ThreadClosed
from greenroom.core.state.timer import TimerCancelled
from greenroom.core.state.world import World, ordered

FILLS = "instruction_generation"
"""The skill that fills in the instruction of the next tool step of its thread."""

ANSWER = "answer"
"""What the timer of a question is called, after its step."""


def emit_end(
    draft: Draft,
    step: Step,
    state: StepEnd,
    *,
    result: Data | None = None,
    error: str = "",
    spent: Amounts = NOTHING,
    blobs: tuple[str, ...] = (),
    effect: Effect | None = None,
    origins: tuple[str, ...] = (),
) -> None:
    """Let the step have ended like this; nothing else. `effect` is what it would have had, if it never began.

    What it was about to read when it began counts as read, whatever came of it.
    """
    began = step.terms.origins if step.terms is not None and step.started_at is not None else ()
    if effect is None and step.terms is not None:
        effect = step.terms.effect
    draft.emit(
        StepEnded(
            at=draft.now,
            step_id=step.step_id,
            thread_id=step.thread_id,
            attempt=step.attempt,
            state=state,
            result=result,
            error=error,
            spent=spent,
            blobs=blobs,
            queued=step.version,
            previous=draft.world.threads[step.thread_id].last,
            work=step.work if step.changed else None,
            origins=merged(step.origins, (*began, *origins)),
            spoils=state != "finished" and step.work.call_id is not None and effect in SIDE_EFFECTS,
        )
    )
    stop_clock(draft, step)
    stop_question(draft, step)


def stop_question(draft: Draft, step: Step) -> None:
    """A question that is over needs no end of its time."""
    if step.approval is not None and (clock := timer_id(step.step_id, ANSWER)) in draft.world.timers:
        draft.emit(TimerCancelled(at=draft.now, timer_id=clock))


def stop_clock(draft: Draft, step: Step) -> None:
    """An attempt that is over needs no end of its working time."""
    if step.until is not None and (clock := timer_id(step.step_id, "work")) in draft.world.timers:
        draft.emit(TimerCancelled(at=draft.now, timer_id=clock))


def end_step(
    draft: Draft,
    step: Step,
    state: StepEnd,
    *,
    error: str = "",
    spent: Amounts = NOTHING,
    effect: Effect | None = None,
    settle: bool = True,
) -> None:
    """The step is over; with `settle`, whoever waited for its answer is let go and its thread may close."""
    asked = draft.world.approvals.get(step.approval) if step.approval else None
    emit_end(draft, step, state, error=error, spent=spent, effect=effect)
    if asked is not None and asked.state != "approved":
        settle_question(draft, "approval_id", asked.approval_id)
    if settle:
        unanswered(draft, step)
        after_end(draft, step)


def drop_step(draft: Draft, step: Step, state: StepEnd, *, error: str, effect: Effect | None = None) -> None:
    """A single step is over without having run, and with it the tool step that only it could have filled in.

    An agent that plans hears of a failure (somebody said no) in its next step: nothing else would tell it.
    """
    tool = to_fill(draft.world, step)
    end_step(draft, step, state, error=error, effect=effect, settle=False)
    if state == "failed" and draft.world.agents[step.agent_id].spec.style == "plan":
        _refused(draft, step, error)
    abandon(draft, tool, step)
    unanswered(draft, step)
    after_end(draft, step)


def _refused(draft: Draft, step: Step, error: str) -> None:
    """Where the step that would read it was refused itself, another one would be refused too."""
    text = f"Step {step.step_id} ({step.work.executor}) was not run. {error}"
    if step.work.executor == "reflection":
        notice(draft, step, "", "denied", text)
    else:
        react(draft, step, "denied", text)


def unanswered(draft: Draft, step: Step) -> None:
    """Whoever waits for an answer that nobody is going to give any more is let go."""
    if step.answers is not None and owes(draft, step):
        release(draft, step.answers, "unanswered")


def owes(draft: Draft, step: Step) -> bool:
    """Whether an answer is still awaited that no other step of the agent is going to give."""
    if step.answers is None or step.answers not in draft.world.waits:
        return False
    return not any(other.answers == step.answers for other in draft.world.steps_of(step.agent_id))


# ---------------------------------------------------------------------------------------------- being told


def notice(draft: Draft, step: Step, about: str, code: str, text: str) -> None:
    """Something that the step's agent reads next in its conversation, if that still goes on."""
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


def react(draft: Draft, step: Step, code: str, text: str) -> None:
    """A notice, and a step to read it in if the conversation goes on and has none left."""
    notice(draft, step, "", code, text)
    if is_open(draft.world, step.thread_id) and not draft.world.threads[step.thread_id].open_steps:
        agent = draft.world.agents[step.agent_id]
        executor = "reflection" if agent.spec.style == "plan" else "converse"
        work = evolve(step.work, type="skill", executor=executor, instruction_content=None, call_id=None)
        enqueue(draft, step.thread_id, evolve(work, text_content=text), stage=step.stage_id, goes_on=True)


# ---------------------------------------------------------------------------------------------- instructions


def to_fill(world: World, step: Step) -> StepId | None:
    """The tool step that this one is to fill in: the first behind it that is pending, if it fills in any."""
    if step.work.executor != FILLS:
        return None
    mine = [one for one in world.steps_of(step.agent_id) if one.thread_id == step.thread_id]
    return next((one.step_id for one in mine[mine.index(step) + 1 :] if one.state == "pending"), None)


def abandon(draft: Draft, name: StepId | None, filler: Step) -> None:
    """The tool step that `filler` was to fill in fails, unless it is filled in or somebody else will do that."""
    tool = draft.world.steps.get(name) if name is not None else None
    if tool is None or tool.state != "pending":
        return
    mine = [one for one in draft.world.steps_of(tool.agent_id) if one.thread_id == tool.thread_id]
    if any(one.work.executor == FILLS for one in mine[: mine.index(tool)]):
        return
    why = f"step {filler.step_id} ({FILLS}) ended without filling in its instruction"
    end_step(draft, tool, "failed", error=f"Not run: {why}.", settle=False)
    text = f"Step {tool.step_id} ({tool.work.executor}) was not run: {why}. Plan it again if it is still needed."
    react(draft, tool, "no_instruction", text)
    unanswered(draft, tool)
    after_end(draft, tool)


# ---------------------------------------------------------------------------------------------- closing


def settle_question(draft: Draft, about: Literal["approval_id", "subtask_id", "stage_id"], name: str) -> None:
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
    tools = [(to_fill(draft.world, step), step) for step in steps]
    for step in steps:
        if step.state == "running":
            draft.emit(StepCancelling(at=draft.now, step_id=step.step_id, attempt=step.attempt, then=then))
        elif step.state == "cancelling":
            if then == "cancelled" and step.then != "cancelled":
                draft.emit(StepCancelling(at=draft.now, step_id=step.step_id, attempt=step.attempt, then=then))
        else:
            end_step(draft, step, state, error="not run")
    for tool, step in tools:
        abandon(draft, tool, step)


def steps_of_task(world: World, task: TaskId) -> list[Step]:
    """All open steps of the task, of whichever agent of its group."""
    return [step for agent in world.tasks[task].group for step in world.steps_of(agent) if step.task_id == task]


def end_task_if_dead(draft: Draft, task_id: TaskId) -> None:
    """A task that is ending is over once none of its stages, steps and parts is left."""
    task = draft.world.tasks.get(task_id)
    if task is None or task.ending is None or task.stages or task.parts or steps_of_task(draft.world, task_id):
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
    if task.parent is not None:
        end_task_if_dead(draft, task.parent)


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


def interrupt(draft: Draft, intent: Interrupt, by: str) -> Verdict:
    """End the steps of a conversation. Each native call among them gets its one result: that it was not run."""
    thread = draft.world.threads.get(intent.thread_id)
    if thread is None:
        return unknown("thread", intent.thread_id, tuple(draft.world.threads))
    if not is_trusted(draft.world, by):
        return Rejected(code="not_yours", why=f"{by!r} may not interrupt {thread.agent_id!r}.")
    _stop(draft, thread.thread_id)
    return None


def _stop(draft: Draft, name: ThreadId) -> None:
    """What was asked of others from here is not waited for, and they need not go on with it."""
    thread = draft.world.threads[name]
    cancel_steps(draft, [one for one in draft.world.steps_of(thread.agent_id) if one.thread_id == name], "cancelled")
    for wait in [one for one in ordered(draft.world.waits) if one.thread_id == name]:
        release(draft, wait.waiting_id, "interrupted")
        for other in [one for one in ordered(draft.world.threads) if one.call == wait.message_id]:
            _stop(draft, other.thread_id)
