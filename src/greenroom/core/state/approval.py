"""Approvals: a person decides before a step starts. The step waits as state, for days if necessary."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import AgentId, ApprovalId, StepId, TaskId
from greenroom.core.base.records import evolve, record

ApprovalAnswer = Literal["approved", "denied"]
ApprovalState = Literal["pending", "approved", "denied"]
ApprovalScope = Literal["once", "run", "always"]


@record
class Grant:
    """A rule that a person granted. It applies to all agents of the team, until the team ends."""

    rule: str
    by: str
    at: int


@record
class Approval:
    """A question to a person about one step. `digest` identifies the call that was shown; another call needs another
    decision.

    `grant` is the rule that the person may grant instead of approving only this call; empty if there is none. With
    `words` the question wants a text answer instead of approval: `reason` holds it. `release` lists destinations, one
    per line, to which the agent's data would go. Approval for the run allows them; a rule never does. At `expires_at`
    the request counts as denied.
    """

    approval_id: ApprovalId
    step_id: StepId
    agent_id: AgentId
    task_id: TaskId
    question: str
    digest: str
    asked_of: AgentId | None
    asked_at: int
    grant: str = ""
    words: bool = False
    release: str = ""
    expires_at: int | None = None
    state: ApprovalState = "pending"
    scope: ApprovalScope = "once"
    answered_by: str = ""
    reason: str = ""


@record
class ApprovalRequested:
    """A step needs a person's decision before it starts."""

    at: int
    approval_id: ApprovalId
    step_id: StepId
    agent_id: AgentId
    task_id: TaskId
    question: str
    digest: str
    asked_of: AgentId | None
    grant: str = ""
    words: bool = False
    release: str = ""
    expires_at: int | None = None


@record
class ApprovalAnswered:
    """A person approved or denied a request. `grant` is the granted rule, `release` the allowed destinations."""

    at: int
    approval_id: ApprovalId
    answer: ApprovalAnswer
    scope: ApprovalScope
    by: str
    reason: str = ""
    grant: str = ""
    release: str = ""


@record
class ApprovalVoided:
    """A request was withdrawn because its decision is no longer needed."""

    at: int
    approval_id: ApprovalId
    why: str


ApprovalEvent = ApprovalRequested | ApprovalAnswered | ApprovalVoided


def covers(approval: Approval, digest: str, exposed_at: int | None) -> bool:
    """Return whether the request was about exactly this call, and was made after the conversation became exposed."""
    return approval.digest == digest and (exposed_at is None or approval.asked_at >= exposed_at)


def create_approval(event: ApprovalRequested) -> Approval:
    """Create the open request from its event."""
    return Approval(
        approval_id=event.approval_id,
        step_id=event.step_id,
        agent_id=event.agent_id,
        task_id=event.task_id,
        question=event.question,
        digest=event.digest,
        asked_of=event.asked_of,
        asked_at=event.at,
        grant=event.grant,
        words=event.words,
        release=event.release,
        expires_at=event.expires_at,
    )


def apply_answer(approval: Approval, event: ApprovalAnswered) -> Approval:
    """Return the request with its decision."""
    return evolve(approval, state=event.answer, scope=event.scope, answered_by=event.by, reason=event.reason)
