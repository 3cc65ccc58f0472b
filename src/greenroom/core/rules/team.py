"""Rules for the team as a whole: begin, fork, pause, resume."""

from __future__ import annotations

from greenroom.core.base.amounts import UNLIMITED
from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import TEAM_BUDGET, WaitingId
from greenroom.core.rules import limits
from greenroom.core.rules.draft import Draft, Verdict, is_trusted, not_manager
from greenroom.core.rules.endings import cancel_steps, interrupt_all, settle_question
from greenroom.core.rules.intents import CreateTeam, Declare, ForkTeam, PauseTeam, ResumeTeam
from greenroom.core.rules.queue import set_timeout
from greenroom.core.state.agent import Declared
from greenroom.core.state.approval import ApprovalVoided
from greenroom.core.state.step import StepUnblocked
from greenroom.core.state.team import TeamCreated, TeamForked, TeamPaused, TeamResumed
from greenroom.core.state.timer import TimerCancelled
from greenroom.core.state.world import ordered


def create_team(draft: Draft, intent: CreateTeam, by: str) -> Verdict:
    """Only an empty log can become a team."""
    if draft.world.team.team_id or not is_trusted(draft.world, by):
        return Rejected(code="team_exists", why=f"This log holds the team {draft.world.team.team_id!r} already.")
    draft.emit(
        TeamCreated(
            at=draft.now,
            team_id=intent.team_id,
            name=intent.name,
            kit=intent.kit,
            workspace=intent.workspace,
            waiting_timeout=intent.waiting_timeout,
        )
    )
    return limits.give(draft, TEAM_BUDGET, intent.limits) if intent.limits != UNLIMITED else None


def fork_team(draft: Draft, intent: ForkTeam, by: str) -> Verdict:
    """What ran is interrupted; approvals, timers and reservations are void: they belong to the other team.

    Who waits for another agent goes on waiting here, so the bounds of those waits begin anew.
    """
    if not is_trusted(draft.world, by):
        return not_manager(by, "fork the team")
    draft.emit(TeamForked(at=draft.now, team_id=intent.team_id, origin=intent.origin))
    interrupt_all(draft, f"forked from {intent.origin.team_id}", last=None)
    for timer in ordered(draft.world.timers):
        draft.emit(TimerCancelled(at=draft.now, timer_id=timer.timer_id))
        if timer.purpose == "wait":
            wait = draft.world.waits[WaitingId(timer.subject)]
            set_timeout(draft, wait, timer.due - wait.since)
    for approval in ordered(draft.world.approvals):
        settle_question(draft, "approval_id", approval.approval_id)
        draft.emit(ApprovalVoided(at=draft.now, approval_id=approval.approval_id, why="forked"))
        if approval.state == "pending":
            draft.emit(StepUnblocked(at=draft.now, step_id=approval.step_id))
    return None


def declare(draft: Draft, intent: Declare, by: str) -> Verdict:
    """Say what the house has, when it is not what was said before."""
    if not is_trusted(draft.world, by):
        return not_manager(by, "declare what the house has")
    told = (tuple(draft.world.blueprints.values()), tuple(draft.world.abilities.values()))
    same = (set_of(told[0]), set_of(told[1])) == (set_of(intent.blueprints), set_of(intent.abilities))
    patience = intent.approvals_expire
    if not same or patience != draft.world.team.approvals_expire:
        draft.emit(
            Declared(at=draft.now, blueprints=intent.blueprints, abilities=intent.abilities, approvals_expire=patience)
        )
    return None


def set_of(rows: tuple[object, ...]) -> frozenset[str]:
    """The rows regardless of their order."""
    return frozenset(repr(row) for row in rows)


def pause_team(draft: Draft, intent: PauseTeam, by: str) -> Verdict:
    """Start nothing new; with `now`, end what runs and queue it again.

    Who pauses what stands still already has paused it too: somebody may be about to let it go on.
    """
    if not is_trusted(draft.world, by):
        return not_manager(by, "pause the team")
    draft.emit(TeamPaused(at=draft.now, why=intent.why))
    if intent.now:
        running = [draft.world.steps[one.running] for one in ordered(draft.world.agents) if one.running is not None]
        cancel_steps(draft, running, "cancelled", then="requeue")
    return None


def resume_team(draft: Draft, _: ResumeTeam, by: str) -> Verdict:
    """Go on."""
    if not is_trusted(draft.world, by):
        return not_manager(by, "resume the team")
    if draft.world.team.paused is None:
        return Rejected(code="not_paused", why="The team is not paused.")
    draft.emit(TeamResumed(at=draft.now))
    return None
