"""Rules for decisions of a person or the clock: limits, approvals, timers."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.errors import Rejection, reject
from greenroom.core.base.ids import AgentId, ApprovalId, StepId, WaitingId, timer_id
from greenroom.core.base.records import evolve
from greenroom.core.rules import limits
from greenroom.core.rules.draft import (
    CLIENT,
    SYSTEM,
    Draft,
    RuleResult,
    is_trusted,
    reject_not_in_group,
    reject_not_manager,
    reject_unknown,
)
from greenroom.core.rules.endings import ANSWER_TIMER, add_notice, cancel_answer_timer, drop_step, settle_question
from greenroom.core.rules.intents import AnswerApproval, CancelTimer, FireTimer, SetLimits, SetTimer
from greenroom.core.rules.origins import list_principals
from greenroom.core.rules.queue import choose_reading_skill, enqueue, open_thread, release_wait
from greenroom.core.state.approval import Approval, ApprovalAnswered
from greenroom.core.state.step import StepCancelling, StepUnblocked, Work
from greenroom.core.state.team_state import sort_rows
from greenroom.core.state.timer import Timer, TimerCancelled, TimerFired, TimerSet

TIME_UNITS: Final = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))


def compute_expiry(draft: Draft) -> int | None:
    """Return when an approval request made now expires; None if never."""
    expires_after = draft.state.team.approvals_expire
    return None if expires_after is None else draft.now + expires_after


def set_expiry_timer(draft: Draft, approval: Approval, due: int) -> None:
    """Set the timer that expires the request, even if the team does not run at that time."""
    timer = Timer(
        timer_id=timer_id(approval.step_id, ANSWER_TIMER),
        purpose="answer",
        subject=approval.approval_id,
        due=due,
        task_id=approval.task_id,
        agent_id=approval.agent_id,
    )
    draft.emit(TimerSet(at=draft.now, timer=timer))


def reject_expired(draft: Draft, approval: Approval) -> Rejection | None:
    """Reject an answer to an expired request. Its timer may not have fired if the team did not run."""
    if approval.expires_at is None or draft.now < approval.expires_at:
        return None
    hint, why = "The call counts as denied. The agent can ask again.", _describe_expiry(approval, approval.expires_at)
    return reject("expired", "The question has expired: {reason}", hint, reason=why)


def expire_approval(draft: Draft, name: ApprovalId, due: int) -> None:
    """Deny a request that got no answer in time. The agent reads why."""
    approval = draft.state.approvals[name]
    why = _describe_expiry(approval, due)
    draft.emit(ApprovalAnswered(at=draft.now, approval_id=name, answer="denied", scope="once", by=SYSTEM, reason=why))
    step = draft.state.steps[approval.step_id]
    drop_step(draft, step, "failed", error=f"Denied: {why} Do without it, or say what is missing.")


def _describe_expiry(approval: Approval, due: int) -> str:
    return f"no one answered within {_format_duration(due - approval.asked_at)}."


def _format_duration(millis: int) -> str:
    """Format a duration in the largest unit that divides it."""
    unit, size = next(
        ((unit, size) for unit, size in TIME_UNITS if millis % size == 0 and millis >= size), TIME_UNITS[-1]
    )
    number = f"{millis / size:g}"
    return f"{number} {unit}{'' if number == '1' else 's'}"


def set_limits(draft: Draft, intent: SetLimits, by: str) -> RuleResult:
    """Set limits. Only a person may: an agent cannot raise its own."""
    if not is_trusted(draft.state, by):
        return reject_not_manager(by, "set limits")
    scope, _, name = intent.budget_id.partition(":")
    agents = draft.state.agents if scope == "agent" else ()
    if intent.budget_id not in draft.state.budgets and AgentId(name) not in agents:
        return reject_unknown("budget", intent.budget_id, tuple(draft.state.budgets))
    return limits.set_budget_limits(draft, intent.budget_id, intent.limits)


def answer_approval(draft: Draft, intent: AnswerApproval, by: str) -> RuleResult:
    """Record a person's decision. Approval lets the step start again; denial fails it.

    A granted rule applies to every agent of the team and approves matching pending requests too.
    """
    approval = draft.state.approvals.get(intent.approval_id)
    if approval is None or approval.state != "pending":
        return reject_unknown("approval", intent.approval_id, tuple(draft.state.approvals))
    if not is_trusted(draft.state, by):
        return Rejection(code="not_a_person", why=f"{by!r} may not answer: a person must.")
    late = reject_expired(draft, approval)
    if late is not None:
        return late
    if approval.words and intent.answer == "approved" and not intent.reason.strip():
        return reject("no_words", "This question needs a text answer.", "Write one.")
    is_lasting = intent.scope != "once" and intent.answer == "approved"
    grant = (intent.grant or approval.grant) if is_lasting else ""
    if is_lasting and not grant and (not approval.release or intent.scope == "always"):
        return _reject_without_rule(approval)
    release = approval.release if is_lasting else ""
    _record_answer(draft, approval, intent, by, grant)
    for other in sort_rows(draft.state.approvals) if grant or release else ():
        # A request about other destinations is not answered by this: the person did not see them.
        same = (other.grant, other.release) == (grant, release)
        if same and other.state == "pending" and reject_expired(draft, other) is None:
            _record_answer(draft, other, evolve(intent, approval_id=other.approval_id), by, grant)
    return None


def _reject_without_rule(approval: Approval) -> Rejection:
    if approval.release:
        why = "Sending an agent's data to a destination is approved for one run at most."
        return reject(
            "release_for_run_only", why, "Approve this call only, or approve it for this run.", code="no_rule"
        )
    why = "There is no rule that is narrow enough to propose for this call."
    return reject("no_rule", why, "Approve this call only, or name a rule.")


def _record_answer(draft: Draft, approval: Approval, intent: AnswerApproval, by: str, grant: str) -> None:
    step = draft.state.steps[approval.step_id]
    draft.emit(
        ApprovalAnswered(
            at=draft.now,
            approval_id=approval.approval_id,
            answer=intent.answer,
            scope=intent.scope,
            by=by,
            reason=intent.reason,
            grant=grant,
            release=approval.release if intent.scope != "once" and intent.answer == "approved" else "",
        )
    )
    if intent.answer == "approved":
        settle_question(draft, "approval_id", approval.approval_id)
        if intent.reason and not approval.words:
            add_notice(draft, step, "", "approved", f"{by} agreed to step {step.step_id}: {intent.reason}")
        cancel_answer_timer(draft, step)
        draft.emit(StepUnblocked(at=draft.now, step_id=step.step_id))
    else:
        who = "the person" if by.split(":", 1)[0] == CLIENT else by
        drop_step(draft, step, "failed", error=f"Denied by {who}. {intent.reason}".strip())


def set_timer(draft: Draft, intent: SetTimer, by: str) -> RuleResult:
    """Set a timer that wakes an agent."""
    state = draft.state
    if by != intent.agent_id and not is_trusted(state, by):
        return reject_not_manager(by, f"set a timer for {intent.agent_id!r}")
    agent, task = state.agents.get(intent.agent_id), state.tasks.get(intent.task_id)
    if agent is None:
        return reject_unknown("agent", intent.agent_id, tuple(state.agents))
    if agent.spec.kind == "human":
        return Rejection(code="not_for_people", why=f"{intent.agent_id!r} is a person: a timer wakes agents.")
    if task is None or task.state == "cancelling":
        return reject_unknown("task", intent.task_id, tuple(state.tasks))
    if intent.agent_id not in task.group:
        return reject_not_in_group(intent.agent_id, task)
    timer = Timer(
        timer_id=timer_id(intent.agent_id, intent.name),
        purpose="wake",
        subject=intent.name,
        due=intent.due,
        task_id=intent.task_id,
        agent_id=intent.agent_id,
        text=intent.text,
        origins=draft.read,
        on_behalf=list_principals(draft),
    )
    draft.emit(TimerSet(at=draft.now, timer=timer))
    return None


def cancel_timer(draft: Draft, intent: CancelTimer, by: str) -> RuleResult:
    """Cancel a timer that would wake an agent. Timeouts of waits and of work cannot be cancelled."""
    timer = draft.state.timers.get(intent.timer_id)
    if timer is None or timer.purpose != "wake":
        return reject_unknown("timer", intent.timer_id)
    if by != timer.agent_id and not is_trusted(draft.state, by):
        return reject_not_manager(by, f"cancel the timer {intent.timer_id!r}")
    draft.emit(TimerCancelled(at=draft.now, timer_id=intent.timer_id))
    return None


def fire_timer(draft: Draft, intent: FireTimer, by: str) -> RuleResult:
    """Handle a due timer: end a wait, wake an agent, stop a step that used its working time, or expire an approval
    request."""
    timer = draft.state.timers.get(intent.timer_id)
    if timer is None:
        return reject_unknown("timer", intent.timer_id)
    if not is_trusted(draft.state, by) or timer.due > draft.now:
        return Rejection(code="too_early", why=f"The timer {intent.timer_id!r} is not due.")
    draft.emit(TimerFired(at=draft.now, timer_id=timer.timer_id))
    if timer.purpose == "wait":
        release_wait(draft, WaitingId(timer.subject), "timeout")
    elif timer.purpose == "answer":
        expire_approval(draft, ApprovalId(timer.subject), timer.due)
    elif timer.purpose == "work":
        name = StepId(timer.subject)
        step = draft.state.steps[name]
        if step.state == "running" and limits.find_time_budget(draft.state, step) is not None:
            draft.emit(StepCancelling(at=draft.now, step_id=name, attempt=step.attempt, then="out_of_time"))
    elif draft.state.tasks[timer.task_id].state != "cancelling":
        style = draft.state.agents[timer.agent_id].spec.style
        work = Work(
            type="skill",
            executor=choose_reading_skill(style),
            intention=f"Timer {timer.subject}.",
            text_content=timer.text,
        )
        thread = open_thread(draft, timer.agent_id, timer.task_id)
        enqueue(draft, thread, work, origins=timer.origins, on_behalf=timer.on_behalf)
    return None
