"""Rules for the whole team: create, fork, declare, pause, resume."""

from __future__ import annotations

from greenroom.core.base.amounts import UNLIMITED
from greenroom.core.base.errors import reject
from greenroom.core.base.ids import TEAM_BUDGET, WaitingId
from greenroom.core.rules import limits
from greenroom.core.rules.draft import Draft, RuleResult, is_trusted, reject_not_manager
from greenroom.core.rules.endings import cancel_steps, settle_question
from greenroom.core.rules.intents import CreateTeam, Declare, ForkTeam, PauseTeam, ResumeTeam
from greenroom.core.rules.queue import set_timeout
from greenroom.core.rules.recovery import interrupt_all
from greenroom.core.state.agent import Declared
from greenroom.core.state.approval import ApprovalVoided
from greenroom.core.state.step import StepUnblocked
from greenroom.core.state.team import TeamCreated, TeamForked, TeamPaused, TeamResumed
from greenroom.core.state.team_state import sort_rows
from greenroom.core.state.timer import TimerCancelled


def create_team(draft: Draft, intent: CreateTeam, by: str) -> RuleResult:
    """Create the team. Its log must be empty."""
    if draft.state.team.team_id or not is_trusted(draft.state, by):
        return reject("team_exists", "This log holds the team {team!r} already.", team=draft.state.team.team_id)
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
    return limits.set_budget_limits(draft, TEAM_BUDGET, intent.limits) if intent.limits != UNLIMITED else None


def fork_team(draft: Draft, intent: ForkTeam, by: str) -> RuleResult:
    """Fork a team. Interrupt running steps; drop approvals, timers and reservations, which belong to the original team.

    Waits for other agents continue here, so their timeouts start anew.
    """
    if not is_trusted(draft.state, by):
        return reject_not_manager(by, "fork the team")
    draft.emit(TeamForked(at=draft.now, team_id=intent.team_id, origin=intent.origin))
    interrupt_all(draft, f"forked from {intent.origin.team_id}", last=None)
    for timer in sort_rows(draft.state.timers):
        draft.emit(TimerCancelled(at=draft.now, timer_id=timer.timer_id))
        if timer.purpose == "wait":
            wait = draft.state.waits[WaitingId(timer.subject)]
            set_timeout(draft, wait, timer.due - wait.since)
    for approval in sort_rows(draft.state.approvals):
        settle_question(draft, "approval_id", approval.approval_id)
        draft.emit(ApprovalVoided(at=draft.now, approval_id=approval.approval_id, why="forked"))
        if approval.state == "pending":
            draft.emit(StepUnblocked(at=draft.now, step_id=approval.step_id))
    return None


def declare(draft: Draft, intent: Declare, by: str) -> RuleResult:
    """Record the team's blueprints, skills and tools, if they changed."""
    if not is_trusted(draft.state, by):
        return reject_not_manager(by, "declare the team's capabilities")
    known = (tuple(draft.state.blueprints.values()), tuple(draft.state.abilities.values()))
    same = (make_row_set(known[0]), make_row_set(known[1])) == (
        make_row_set(intent.blueprints),
        make_row_set(intent.abilities),
    )
    expires_after = intent.approvals_expire
    if not same or expires_after != draft.state.team.approvals_expire:
        draft.emit(
            Declared(
                at=draft.now, blueprints=intent.blueprints, abilities=intent.abilities, approvals_expire=expires_after
            )
        )
    return None


def make_row_set(rows: tuple[object, ...]) -> frozenset[str]:
    """Return the rows without their order."""
    return frozenset(repr(row) for row in rows)


def pause_team(draft: Draft, intent: PauseTeam, by: str) -> RuleResult:
    """Pause the team. With `now`, stop running steps and queue them again.

    A pause of a paused team is recorded too, because another person may be about to resume it.
    """
    if not is_trusted(draft.state, by):
        return reject_not_manager(by, "pause the team")
    draft.emit(TeamPaused(at=draft.now, why=intent.why))
    if intent.now:
        running = [
            draft.state.steps[agent.running] for agent in sort_rows(draft.state.agents) if agent.running is not None
        ]
        cancel_steps(draft, running, "cancelled", then="requeue")
    return None


def resume_team(draft: Draft, _: ResumeTeam, by: str) -> RuleResult:
    if not is_trusted(draft.state, by):
        return reject_not_manager(by, "resume the team")
    if draft.state.team.paused is None:
        return reject("team_not_paused", "The team is not paused.", code="not_paused")
    draft.emit(TeamResumed(at=draft.now))
    return None
