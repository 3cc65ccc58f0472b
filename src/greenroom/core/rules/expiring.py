"""Questions that nobody answers in time: where it was said that they expire, they end as a no."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import ApprovalId, timer_id
from greenroom.core.rules.closing import ANSWER, drop_step
from greenroom.core.rules.draft import SYSTEM, Draft
from greenroom.core.state.approval import Approval, ApprovalAnswered
from greenroom.core.state.timer import Timer, TimerSet

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
