"""How steps end (result, cancelled, interrupted, uncertain), what an end closes, and what follows."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import Rejection
from greenroom.core.base.ids import AgentId, StepId, TaskId, ThreadId, timer_id
from greenroom.core.base.records import Data, evolve
from greenroom.core.rules.draft import Draft, RuleResult, find_own_step
from greenroom.core.rules.intents import FinishStep, FinishSubtask
from greenroom.core.rules.origins import share_origins
from greenroom.core.rules.queue import (
    choose_reply_skill,
    enqueue,
    find_next_place,
    has_further_step,
    is_thread_open,
    release_wait,
    release_waits_where,
)
from greenroom.core.state.message import Message, MessageSettled
from greenroom.core.state.origin import merge_labels
from greenroom.core.state.step import SIDE_EFFECTS, AfterCancel, Effect, Step, StepCancelling, StepEnd, StepEnded
from greenroom.core.state.task import TaskEnded
from greenroom.core.state.team_state import TeamState, sort_rows
from greenroom.core.state.thread import Noticed, ThreadClosed
from greenroom.core.state.timer import TimerCancelled

INSTRUCTION_SKILL = "instruction_generation"
"""The skill that fills in the instruction of its thread's next tool step."""

HANDOFF_SKILLS = ("handoff_summary", "choose_receiver")
"""The skills whose message passes the task on."""

ANSWER_TIMER = "answer"
"""The name of an approval request's timer, after the step id."""


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
    """Emit the end of a step, without its consequences. `effect` is the effect class of a step that never started.

    What a started step was about to read counts as read, regardless of its outcome.
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
            previous=draft.state.threads[step.thread_id].last,
            work=step.work if step.changed else None,
            origins=merge_labels(step.origins, (*began, *origins)),
            spoils=state != "finished" and step.work.call_id is not None and effect in SIDE_EFFECTS,
        )
    )
    cancel_work_timer(draft, step)
    cancel_answer_timer(draft, step)


def cancel_answer_timer(draft: Draft, step: Step) -> None:
    """Cancel the expiry timer of the step's approval request."""
    if step.approval is not None and (clock := timer_id(step.step_id, ANSWER_TIMER)) in draft.state.timers:
        draft.emit(TimerCancelled(at=draft.now, timer_id=clock))


def cancel_work_timer(draft: Draft, step: Step) -> None:
    """Cancel the working-time timer of an ended attempt."""
    if step.until is not None and (clock := timer_id(step.step_id, "work")) in draft.state.timers:
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
    """End a step. With `settle`, also release the agent that waits for its answer and close its thread if possible."""
    approval = draft.state.approvals.get(step.approval) if step.approval else None
    emit_end(draft, step, state, error=error, spent=spent, effect=effect)
    if approval is not None and approval.state != "approved":
        settle_question(draft, "approval_id", approval.approval_id)
    if settle:
        release_unanswered(draft, step)
        close_after_step(draft, step)


def drop_step(draft: Draft, step: Step, state: StepEnd, *, error: str, effect: Effect | None = None) -> None:
    """End a step that did not run, and the tool step that only it could have filled in.

    An agent with style `plan` gets a step that reports the failure, because nothing else would tell it.
    """
    tool = find_step_to_fill(draft.state, step)
    end_step(draft, step, state, error=error, effect=effect, settle=False)
    if state == "failed" and draft.state.agents[step.agent_id].spec.style == "plan":
        text = f"Step {step.step_id} ({step.work.executor}) was not run. {error}"
        if step.work.executor == "reflection":  # another reflection would be refused too
            add_notice(draft, step, "", "denied", text)
        else:
            notify_agent(draft, step, "denied", text)
    fail_unfilled_step(draft, tool, step)
    release_unanswered(draft, step)
    close_after_step(draft, step)


def release_unanswered(draft: Draft, step: Step) -> None:
    """Release the waiting agent if no step will answer it any more."""
    if step.answers is not None and is_answer_owed(draft, step):
        release_wait(draft, step.answers, "unanswered")


def is_answer_owed(draft: Draft, step: Step) -> bool:
    """Return whether an answer is still awaited that no other step of the agent will give."""
    if step.answers is None or step.answers not in draft.state.waits:
        return False
    return not any(other.answers == step.answers for other in draft.state.steps_of(step.agent_id))


def add_notice(draft: Draft, step: Step, about: str, code: str, text: str) -> None:
    """Add a notice that the agent reads next in the step's conversation, if it is still open."""
    if step.thread_id in draft.state.threads:
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


def notify_agent(draft: Draft, step: Step, code: str, text: str) -> None:
    """Add a notice. Queue a step to read it if the conversation is open and no other step goes on with the work."""
    add_notice(draft, step, "", code, text)
    if is_thread_open(draft.state, step.thread_id) and not has_further_step(draft.state, step):
        agent = draft.state.agents[step.agent_id]
        executor = "reflection" if agent.spec.style == "plan" else "converse"
        work = evolve(step.work, type="skill", executor=executor, instruction_content=None, call_id=None)
        enqueue(draft, step.thread_id, evolve(work, text_content=text), stage=step.stage_id, goes_on=True)


def notify_uncertain(draft: Draft, step: Step) -> None:
    """Tell the agent that it is unknown whether a step happened."""
    text = (
        f"Step {step.step_id} ({step.work.executor}) was cut off while it ran. It is uncertain whether it happened. "
        "It was not run again: look first, then decide."
    )
    notify_agent(draft, step, "uncertain", text)


def find_step_to_fill(state: TeamState, step: Step) -> StepId | None:
    """Return the pending tool step that this step has to fill in: the first one behind it in its thread."""
    if step.work.executor != INSTRUCTION_SKILL:
        return None
    thread_steps = [candidate for candidate in state.steps_of(step.agent_id) if candidate.thread_id == step.thread_id]
    return next(
        (
            candidate.step_id
            for candidate in thread_steps[thread_steps.index(step) + 1 :]
            if candidate.state == "pending"
        ),
        None,
    )


def fail_unfilled_step(draft: Draft, name: StepId | None, filler: Step) -> None:
    """Fail the tool step that `filler` left unfilled, unless another step will fill it in."""
    tool = draft.state.steps.get(name) if name is not None else None
    if tool is None or tool.state != "pending":
        return
    thread_steps = [
        candidate for candidate in draft.state.steps_of(tool.agent_id) if candidate.thread_id == tool.thread_id
    ]
    if any(candidate.work.executor == INSTRUCTION_SKILL for candidate in thread_steps[: thread_steps.index(tool)]):
        return
    why = f"step {filler.step_id} ({INSTRUCTION_SKILL}) ended without filling in its instruction"
    end_step(draft, tool, "failed", error=f"Not run: {why}.", settle=False)
    text = f"Step {tool.step_id} ({tool.work.executor}) was not run: {why}. Plan it again if it is still needed."
    notify_agent(draft, tool, "no_instruction", text)
    release_unanswered(draft, tool)
    close_after_step(draft, tool)


def settle_question(draft: Draft, about: Literal["approval_id", "subtask_id", "stage_id"], name: str) -> None:
    """Mark the question to a person about this item as settled."""
    for message in sort_rows(draft.state.mail):
        if message.data is not None and message.data.get(about) == name:
            settle_message(draft, message, message.receiver)


def settle_message(draft: Draft, message: Message, receivers: tuple[AgentId, ...]) -> None:
    """Settle a message for these receivers. It leaves the state when no person has to answer it."""
    for receiver in receivers:
        open_message = draft.state.mail.get(message.message_id)
        if open_message is not None and receiver in open_message.receiver:
            draft.emit(MessageSettled(at=draft.now, message_id=message.message_id, agent_id=receiver))


def close_after_step(draft: Draft, step: Step) -> None:
    """Close the step's thread and end its task if nothing is left in them."""
    close_thread_if_over(draft, step.thread_id)
    end_task_if_done(draft, step.task_id)


def close_thread_if_over(draft: Draft, thread_id: ThreadId) -> None:
    """Close a thread without open steps if it is a call, or if its stage or task has ended."""
    thread = draft.state.threads.get(thread_id)
    if thread is None or thread.open_steps:
        return
    if thread.call is not None or not is_thread_open(draft.state, thread_id):
        draft.emit(ThreadClosed(at=draft.now, thread_id=thread_id))


def cancel_steps(draft: Draft, steps: list[Step], state: StepEnd, then: AfterCancel = "cancelled") -> None:
    """End the waiting steps immediately and begin to stop the running ones."""
    tools = [(find_step_to_fill(draft.state, step), step) for step in steps]
    for step in steps:
        if step.state == "running":
            draft.emit(StepCancelling(at=draft.now, step_id=step.step_id, attempt=step.attempt, then=then))
        elif step.state == "cancelling":
            if then == "cancelled" and step.then != "cancelled":
                draft.emit(StepCancelling(at=draft.now, step_id=step.step_id, attempt=step.attempt, then=then))
        else:
            end_step(draft, step, state, error="not run")
    for tool, step in tools:
        fail_unfilled_step(draft, tool, step)


def steps_of_task(state: TeamState, task: TaskId) -> list[Step]:
    """Return all open steps of the task, over all agents of its group."""
    return [step for agent in state.tasks[task].group for step in state.steps_of(agent) if step.task_id == task]


def end_task_if_done(draft: Draft, task_id: TaskId) -> None:
    """End a task that is ending, once it has no stages, steps and child tasks left."""
    task = draft.state.tasks.get(task_id)
    if task is None or task.ending is None or task.stages or task.parts or steps_of_task(draft.state, task_id):
        return
    release_waits_where(draft, "task_over", lambda wait: wait.task_id == task_id)
    for timer in sort_rows(draft.state.timers):
        if timer.task_id == task_id:
            draft.emit(TimerCancelled(at=draft.now, timer_id=timer.timer_id))
    for message in sort_rows(draft.state.mail):
        if message.task_id == task_id:
            settle_message(draft, message, message.receiver)
    for thread in sort_rows(draft.state.threads):
        if thread.task_id == task_id:
            draft.emit(ThreadClosed(at=draft.now, thread_id=thread.thread_id))
    draft.emit(
        TaskEnded(at=draft.now, task_id=task_id, state=task.ending, summary=task.summary, evidence=task.evidence)
    )
    if task.parent is not None:
        end_task_if_done(draft, task.parent)


MAX_RETRIES = 3
"""Maximum consecutive retries for an agent whose consequences were refused."""


def find_running_step(draft: Draft, name: str, attempt: int, by: str) -> Step | Rejection:
    """Return the step if this attempt runs or is being stopped, and the sender may act on it."""
    step = find_own_step(draft.state, name, by)
    if isinstance(step, Rejection):
        return step
    if step.state not in ("running", "cancelling") or step.attempt != attempt:
        return reject_stale_attempt(step, attempt)
    return step


def is_cancelled(step: Step) -> bool:
    """Return whether the step is being cancelled for good."""
    return step.state == "cancelling" and step.then == "cancelled"


def reject_stale_attempt(step: Step, attempt: int) -> Rejection:
    """Reject a report about an attempt that no longer runs."""
    return Rejection(
        code="stale_attempt",
        why=f"Attempt {attempt} of step {step.step_id!r} does not run: it is {step.state}, attempt {step.attempt}.",
    )


def finish_step(draft: Draft, intent: FinishStep, by: str) -> RuleResult:
    """Record the result, then decide each consequence separately. A refused consequence does not undo the result.

    A cancelled step has no consequences. If it would have ended its subtask, it counts as cancelled.
    """
    step = find_running_step(draft, intent.step_id, intent.attempt, by)
    if isinstance(step, Rejection):
        return step
    if intent.outcome == "cancelled" and not is_cancelled(step):
        return Rejection(code="not_cancelled", why=f"Step {step.step_id!r} was not cancelled.")
    draft.locks = draft.state.agents[step.agent_id].step_lock
    tool = find_step_to_fill(draft.state, step)
    # Ignore a negative cost: a step must not add to its budget.
    claimed = intent.spent if intent.spent.lowest >= 0 else NOTHING
    spent = evolve(claimed, steps=1, millis=measure_working_time(step, draft.now))
    ends_subtask = any(isinstance(consequence, FinishSubtask) for consequence in intent.intents)
    emit_end(
        draft,
        step,
        "cancelled" if ends_subtask and is_cancelled(step) else intent.outcome,
        result=intent.result,
        error=intent.error,
        spent=spent,
        blobs=intent.blobs,
        origins=intent.origins,
    )
    if intent.outcome == "uncertain":
        notify_uncertain(draft, step)
    if not is_cancelled(step):
        _apply_consequences(draft, step, intent)
    if tool is not None:
        fail_unfilled_step(draft, tool, step)
    if step.answers is not None:
        _handle_owed_answer(draft, step)
    close_after_step(draft, step)
    return None


def measure_working_time(step: Step, now: int) -> int:
    """Return the working time in ms, up to the step's deadline. A clock that jumped back gives 0."""
    end = now if step.until is None else min(now, step.until)
    return 0 if step.started_at is None else max(0, end - step.started_at)


def _apply_consequences(draft: Draft, step: Step, intent: FinishStep) -> None:
    refused, begin = False, len(draft.events)
    draft.cause = evolve(step, blobs=intent.blobs) if intent.blobs else step
    draft.read = draft.state.threads[step.thread_id].origins
    for consequence in intent.intents:
        rejected = draft.apply(consequence, step.agent_id)
        if rejected is not None:
            refused = True
            about = type(consequence).__name__
            add_notice(draft, step, about, rejected.code, f"{about} was refused. {rejected}")
    if refused:
        _retry_after_refusal(draft, step)
    share_origins(draft, begin)
    draft.cause, draft.read = None, ()


def _retry_after_refusal(draft: Draft, step: Step) -> None:
    """Queue the step again if its agent has nothing else queued in which to read the refusal."""
    if not is_thread_open(draft.state, step.thread_id) or has_further_step(draft.state, step):
        return
    if step.work.type == "skill" and step.retry < MAX_RETRIES:
        _repeat_step(draft, step, retry=step.retry + 1)


def _repeat_step(draft: Draft, step: Step, retry: int = 0) -> None:
    """Queue the same work again. If an agent waits for its answer, it goes to the front, after its own questions.

    A tool is not called twice and a native call is not answered twice: only the answer is still to be given.
    """
    owed_answer = step.answers if step.answers in draft.state.waits else None
    agent = draft.state.agents[step.agent_id]
    work = evolve(step.work, call_id=None)
    if work.executor in HANDOFF_SKILLS:  # the agent itself reads why its message was refused
        work = evolve(work, executor="converse", instruction_content=None)
    if work.type == "tool":
        text = f"Answer now what you were asked.\n<return_waiting_id>{owed_answer}</return_waiting_id>"
        executor = choose_reply_skill(agent.spec.style)
        work = evolve(work, type="skill", executor=executor, text_content=text, instruction_content=None)
    enqueue(
        draft,
        step.thread_id,
        work,
        place=None if owed_answer is None else find_next_place(draft.state, agent),
        message=step.message_id,
        answers=owed_answer,
        after=() if owed_answer is None else draft.list_new_waits(step.agent_id),
        stage=step.stage_id,
        jumped=owed_answer is not None,
        retry=retry,
        goes_on=True,
    )


def _handle_owed_answer(draft: Draft, step: Step) -> None:
    """Queue the step again if it asked another agent before it answers. Otherwise release the waiting agent."""
    if step.answers is None or not is_answer_owed(draft, step):
        return
    if draft.list_new_waits(step.agent_id) and is_thread_open(draft.state, step.thread_id):
        _repeat_step(draft, step)
    else:
        release_wait(draft, step.answers, "unanswered")
