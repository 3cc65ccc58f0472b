"""What an end closes: a step and whoever waited for it, a question, a thread, a task. How they end: `endings.py`."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.ids import AgentId, StepId, TaskId, ThreadId, timer_id
from greenroom.core.base.records import Data, evolve
from greenroom.core.rules.draft import Draft
from greenroom.core.rules.queue import enqueue, is_open
from greenroom.core.rules.waits import release, release_where
from greenroom.core.state.message import Message, MessageSettled
from greenroom.core.state.origin import merged
from greenroom.core.state.step import SIDE_EFFECTS, CancelThen, Effect, Step, StepCancelling, StepEnd, StepEnded
from greenroom.core.state.task import TaskEnded
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
