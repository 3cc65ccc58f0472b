"""Approvals: a person is asked before a step starts; the step waits as state, for days if need be."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.ids import AgentId, ApprovalId, StepId, TaskId
from greenroom.core.base.records import evolve, record

Answer = Literal["approved", "denied"]
ApprovalWord = Literal["pending", "approved", "denied"]
Scope = Literal["once", "run", "always"]


@record
class Grant:
    """A rule that a person has agreed to. It holds for all agents of the team, until the team is over."""

    rule: str
    by: str
    at: int


@record
class Approval:
    """A question about one step. `digest` names exactly what was shown: another call needs another answer.

    `grant` is the rule that a person may agree to instead of this one call; empty when there is none. With `words` it
    is no yes that is wanted but an answer: `reason` is what they say. `release` are places, one a line, to which what
    the agent holds would go: a yes for the run lets it, and no rule ever does. At `expires_at` it is a no.
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
    state: ApprovalWord = "pending"
    scope: Scope = "once"
    answered_by: str = ""
    reason: str = ""


@record
class ApprovalRequested:
    """Somebody must say yes before the step starts."""

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
    """They said it, or said no. With `grant`, what they agreed to is this rule; with `release`, that it goes there."""

    at: int
    approval_id: ApprovalId
    answer: Answer
    scope: Scope
    by: str
    reason: str = ""
    grant: str = ""
    release: str = ""


@record
class ApprovalVoided:
    """Nobody needs the answer any more."""

    at: int
    approval_id: ApprovalId
    why: str


ApprovalEvent = ApprovalRequested | ApprovalAnswered | ApprovalVoided


def covers(approval: Approval, digest: str, exposed_at: int | None) -> bool:
    """Whether it was about exactly this call, and asked after its conversation had read what there is to be told of."""
    return approval.digest == digest and (exposed_at is None or approval.asked_at >= exposed_at)


def requested(event: ApprovalRequested) -> Approval:
    """The question as it stands."""
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


def answered(approval: Approval, event: ApprovalAnswered) -> Approval:
    """The question with its answer."""
    return evolve(approval, state=event.answer, scope=event.scope, answered_by=event.by, reason=event.reason)
