"""Rules for what a person or the clock decides: limits, approvals, timers."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import AgentId, ApprovalId, StepId, WaitingId, timer_id
from greenroom.core.base.records import evolve
from greenroom.core.rules import limits
from greenroom.core.rules.draft import DOOR, SYSTEM, Draft, Verdict, is_trusted, not_in_group, not_manager, unknown
from greenroom.core.rules.endings import ANSWER, drop_step, notice, settle_question, stop_question
from greenroom.core.rules.intents import AnswerApproval, CancelTimer, FireTimer, SetLimits, SetTimer
from greenroom.core.rules.origins import given_here
from greenroom.core.rules.queue import enqueue, open_thread, reader, release
from greenroom.core.state.approval import Approval, ApprovalAnswered
from greenroom.core.state.step import StepCancelling, StepUnblocked, Work
from greenroom.core.state.timer import Timer, TimerCancelled, TimerFired, TimerSet
from greenroom.core.state.world import ordered

UNITS: Final = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))


def expiry(draft: Draft) -> int | None:
    """When a question that is asked now expires; None when it waits for as long as it takes."""
    patience = draft.world.team.approvals_expire
    return None if patience is None else draft.now + patience


def set_expiry(draft: Draft, approval: Approval, due: int) -> None:
    """The question ends at that time, whether or not anybody runs the team then."""
    timer = Timer(
        timer_id=timer_id(approval.step_id, ANSWER),
        purpose="answer",
        subject=approval.approval_id,
        due=due,
        task_id=approval.task_id,
        agent_id=approval.agent_id,
    )
    draft.emit(TimerSet(at=draft.now, timer=timer))


def too_late(draft: Draft, approval: Approval) -> Rejected | None:
    """Why it can no longer be answered, if it cannot: nobody may have run the team when its time was over."""
    if approval.expires_at is None or draft.now < approval.expires_at:
        return None
    why = f"The question has expired: {_why(approval, approval.expires_at)}"
    return Rejected(code="expired", why=why, hint="What it was about counts as denied. The agent can ask again.")


def expire(draft: Draft, name: ApprovalId, due: int) -> None:
    """Nobody has answered: that is a no, and the agent reads why."""
    approval = draft.world.approvals[name]
    why = _why(approval, due)
    draft.emit(ApprovalAnswered(at=draft.now, approval_id=name, answer="denied", scope="once", by=SYSTEM, reason=why))
    step = draft.world.steps[approval.step_id]
    drop_step(draft, step, "failed", error=f"Denied: {why} Do without it, or say what is missing.")


def _why(approval: Approval, due: int) -> str:
    return f"nobody answered within {_span(due - approval.asked_at)}."


def _span(millis: int) -> str:
    """A time as people say it: in the largest unit that leaves nothing over."""
    unit, size = next(((unit, size) for unit, size in UNITS if millis % size == 0 and millis >= size), UNITS[-1])
    number = f"{millis / size:g}"
    return f"{number} {unit}{'' if number == '1' else 's'}"


def set_limits(draft: Draft, intent: SetLimits, by: str) -> Verdict:
    """Only a person sets limits: no agent may raise its own."""
    if not is_trusted(draft.world, by):
        return not_manager(by, "set limits")
    scope, _, name = intent.budget_id.partition(":")
    agents = draft.world.agents if scope == "agent" else ()
    if intent.budget_id not in draft.world.budgets and AgentId(name) not in agents:
        return unknown("budget", intent.budget_id, tuple(draft.world.budgets))
    return limits.give(draft, intent.budget_id, intent.limits)


def answer_approval(draft: Draft, intent: AnswerApproval, by: str) -> Verdict:
    """The person says yes: the step may ask to start again. No: the step has failed.

    A yes to a rule holds for every agent of the team, also for those who have asked for the same already.
    """
    approval = draft.world.approvals.get(intent.approval_id)
    if approval is None or approval.state != "pending":
        return unknown("approval", intent.approval_id, tuple(draft.world.approvals))
    if not is_trusted(draft.world, by):
        return Rejected(code="not_a_person", why=f"{by!r} may not answer: a person must.")
    late = too_late(draft, approval)
    if late is not None:
        return late
    if approval.words and intent.answer == "approved" and not intent.reason.strip():
        return Rejected(code="no_words", why="An answer in words is wanted, and there is none.", hint="Say something.")
    lasting = intent.scope != "once" and intent.answer == "approved"
    grant = (intent.grant or approval.grant) if lasting else ""
    if lasting and not grant and (not approval.release or intent.scope == "always"):
        return _no_rule(approval)
    release = approval.release if lasting else ""
    _answer(draft, approval, intent, by, grant)
    for other in ordered(draft.world.approvals) if grant or release else ():
        # Nobody has agreed to what they were not told: one about other places is not answered by this.
        same = (other.grant, other.release) == (grant, release)
        if same and other.state == "pending" and too_late(draft, other) is None:
            _answer(draft, other, evolve(intent, approval_id=other.approval_id), by, grant)
    return None


def _no_rule(approval: Approval) -> Rejected:
    if approval.release:
        why = "Where things go that an agent holds is agreed to for a run at most."
        return Rejected(code="no_rule", why=why, hint="Agree to this one call, or for this run.")
    why = "There is no rule that allows this and little else."
    return Rejected(code="no_rule", why=why, hint="Agree to this one call, or name a rule.")


def _answer(draft: Draft, approval: Approval, intent: AnswerApproval, by: str, grant: str) -> None:
    step = draft.world.steps[approval.step_id]
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
            notice(draft, step, "", "approved", f"{by} agreed to step {step.step_id}: {intent.reason}")
        stop_question(draft, step)
        draft.emit(StepUnblocked(at=draft.now, step_id=step.step_id))
    else:
        who = "the person" if by.split(":", 1)[0] == DOOR else by
        drop_step(draft, step, "failed", error=f"Denied by {who}. {intent.reason}".strip())


def set_timer(draft: Draft, intent: SetTimer, by: str) -> Verdict:
    """An agent is woken later."""
    world = draft.world
    if by != intent.agent_id and not is_trusted(world, by):
        return not_manager(by, f"set a timer for {intent.agent_id!r}")
    agent, task = world.agents.get(intent.agent_id), world.tasks.get(intent.task_id)
    if agent is None:
        return unknown("agent", intent.agent_id, tuple(world.agents))
    if agent.spec.kind == "human":
        return Rejected(code="not_for_people", why=f"{intent.agent_id!r} is a person: a timer wakes agents.")
    if task is None or task.state == "cancelling":
        return unknown("task", intent.task_id, tuple(world.tasks))
    if intent.agent_id not in task.group:
        return not_in_group(intent.agent_id, task)
    timer = Timer(
        timer_id=timer_id(intent.agent_id, intent.name),
        purpose="wake",
        subject=intent.name,
        due=intent.due,
        task_id=intent.task_id,
        agent_id=intent.agent_id,
        text=intent.text,
        origins=draft.read,
        on_behalf=given_here(draft),
    )
    draft.emit(TimerSet(at=draft.now, timer=timer))
    return None


def cancel_timer(draft: Draft, intent: CancelTimer, by: str) -> Verdict:
    """An agent is not woken after all. The timeout of a wait, or of work, is nobody's to cancel."""
    timer = draft.world.timers.get(intent.timer_id)
    if timer is None or timer.purpose != "wake":
        return unknown("timer", intent.timer_id)
    if by != timer.agent_id and not is_trusted(draft.world, by):
        return not_manager(by, f"cancel the timer {intent.timer_id!r}")
    draft.emit(TimerCancelled(at=draft.now, timer_id=intent.timer_id))
    return None


def fire_timer(draft: Draft, intent: FireTimer, by: str) -> Verdict:
    """Its time has come: a wait ends, an agent is woken, a step has worked as long as it may,
    or a question has waited as long as it may."""
    timer = draft.world.timers.get(intent.timer_id)
    if timer is None:
        return unknown("timer", intent.timer_id)
    if not is_trusted(draft.world, by) or timer.due > draft.now:
        return Rejected(code="too_early", why=f"The timer {intent.timer_id!r} is not due.")
    draft.emit(TimerFired(at=draft.now, timer_id=timer.timer_id))
    if timer.purpose == "wait":
        release(draft, WaitingId(timer.subject), "timeout")
    elif timer.purpose == "answer":
        expire(draft, ApprovalId(timer.subject), timer.due)
    elif timer.purpose == "work":
        _out_of_time(draft, StepId(timer.subject))
    elif draft.world.tasks[timer.task_id].state != "cancelling":
        style = draft.world.agents[timer.agent_id].spec.style
        work = Work(type="skill", executor=reader(style), intention=f"Timer {timer.subject}.", text_content=timer.text)
        thread = open_thread(draft, timer.agent_id, timer.task_id)
        enqueue(draft, thread, work, origins=timer.origins, on_behalf=timer.on_behalf)
    return None


def _out_of_time(draft: Draft, name: StepId) -> None:
    """End the attempt, unless it is being ended already or nothing limits its working time any more."""
    step = draft.world.steps[name]
    if step.state == "running" and limits.time_limit(draft.world, step) is not None:
        draft.emit(StepCancelling(at=draft.now, step_id=name, attempt=step.attempt, then="out_of_time"))
