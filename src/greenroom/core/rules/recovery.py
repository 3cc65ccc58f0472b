"""Recovery: attempts that end without a result, after a crash, a failure of the provider, or a person's interrupt."""

from __future__ import annotations

from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import Rejection
from greenroom.core.base.ids import ThreadId
from greenroom.core.base.records import evolve
from greenroom.core.rules.draft import Draft, RuleResult, is_trusted, reject_unknown
from greenroom.core.rules.endings import (
    cancel_steps,
    cancel_work_timer,
    close_after_step,
    end_step,
    fail_unfilled_step,
    find_running_step,
    find_step_to_fill,
    measure_working_time,
    notify_agent,
    notify_uncertain,
    release_unanswered,
)
from greenroom.core.rules.intents import Interrupt, Recover, ReleaseStep
from greenroom.core.rules.limits import find_time_budget
from greenroom.core.rules.queue import release_wait
from greenroom.core.state.step import Step, StepInterrupted
from greenroom.core.state.task import TaskPaused
from greenroom.core.state.team import OwnerChanged
from greenroom.core.state.team_state import sort_rows


def recover(draft: Draft, intent: Recover, by: str) -> RuleResult:
    """Record a new owner. Steps that ran under the old owner become interrupted, uncertain or cancelled."""
    if not is_trusted(draft.state, by) or intent.epoch <= draft.state.team.epoch:
        return Rejection(code="stale_epoch", why=f"Epoch {intent.epoch} is not newer than {draft.state.team.epoch}.")
    last = draft.state.at
    draft.emit(OwnerChanged(at=draft.now, epoch=intent.epoch, owner=intent.owner))
    interrupt_all(draft, "the process ended", last)
    return None


def interrupt_all(draft: Draft, why: str, last: int | None) -> None:
    """Interrupt every running attempt of the team.

    Reservations count as spent, as does the time until `last`, the old owner's last event: downtime is not working
    time. Without `last` nothing is spent, because another team pays.
    """
    for agent in sort_rows(draft.state.agents):
        if agent.running is not None:
            step = draft.state.steps[agent.running]
            spent = NOTHING if last is None else evolve(step.reserved, millis=measure_working_time(step, last))
            _end_without_result(draft, step, why, spent)
            close_after_step(draft, step)


def release_step(draft: Draft, intent: ReleaseStep, by: str) -> RuleResult:
    """End an attempt whose effect has stopped without a result."""
    step = find_running_step(draft, intent.step_id, intent.attempt, by)
    if isinstance(step, Rejection):
        return step
    claimed = intent.spent if intent.spent is not None and intent.spent.lowest >= 0 else step.reserved
    spent = evolve(claimed, millis=measure_working_time(step, draft.now))
    _end_without_result(draft, step, intent.why, spent, ran=intent.ran, partial=intent.partial)
    close_after_step(draft, step)
    task = draft.state.tasks.get(step.task_id)
    if intent.pause and task is not None and task.is_runnable:
        kind = "incomplete" if intent.partial else "provider"
        draft.emit(TaskPaused(at=draft.now, task_id=step.task_id, why=f"{kind}: {intent.why}"))
    return None


def _end_without_result(
    draft: Draft, step: Step, why: str, spent: Amounts, *, ran: bool = True, partial: str = ""
) -> None:
    """End an attempt without a result, according to its effect class. An attempt that never ran had no effect."""
    effect = step.terms.effect if step.terms and ran else "pure"
    then = step.then if step.state == "cancelling" else None
    tool = find_step_to_fill(draft.state, step)
    if then == "out_of_time":
        limit = find_time_budget(draft.state, step)
        under = f" under the limit millis of {limit!r}" if limit is not None else ""
        why = f"Its working time is over: it had {step.reserved.millis} ms{under}"
    if then == "cancelled":
        partly = " It was running and may have happened in part." if effect == "effectful" else ""
        end_step(draft, step, "cancelled", error=f"Cancelled.{partly}", spent=spent, settle=False)
    elif effect == "effectful":
        error = f"{why}: it is not known whether this happened, so it is not run again."
        end_step(draft, step, "uncertain", error=error, spent=spent, settle=False)
        notify_uncertain(draft, step)
    elif then == "out_of_time":
        end_step(draft, step, "failed", error=f"{why}.", spent=spent, settle=False)
        notify_agent(draft, step, "out_of_time", f"Step {step.step_id} ({step.work.executor}) was stopped. {why}.")
    else:
        cancel_work_timer(draft, step)
        interrupted = StepInterrupted(
            at=draft.now, step_id=step.step_id, attempt=step.attempt, why=why, spent=spent, partial=partial
        )
        draft.emit(interrupted)
        return
    fail_unfilled_step(draft, tool, step)
    release_unanswered(draft, step)


def interrupt(draft: Draft, intent: Interrupt, by: str) -> RuleResult:
    """Cancel the steps of a conversation. Each native call gets its one result: that it was not run."""
    thread = draft.state.threads.get(intent.thread_id)
    if thread is None:
        return reject_unknown("thread", intent.thread_id, tuple(draft.state.threads))
    if not is_trusted(draft.state, by):
        return Rejection(code="not_yours", why=f"{by!r} may not interrupt {thread.agent_id!r}.")
    stop_thread(draft, thread.thread_id)
    return None


def stop_thread(draft: Draft, name: ThreadId) -> None:
    """Cancel the thread's steps, its waits, and the calls that it made to other agents."""
    thread = draft.state.threads[name]
    cancel_steps(draft, [item for item in draft.state.steps_of(thread.agent_id) if item.thread_id == name], "cancelled")
    for wait in [item for item in sort_rows(draft.state.waits) if item.thread_id == name]:
        release_wait(draft, wait.waiting_id, "interrupted")
        for other in [item for item in sort_rows(draft.state.threads) if item.call == wait.message_id]:
            stop_thread(draft, other.thread_id)
