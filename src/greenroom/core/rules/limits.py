"""Limits: how they are given; at one it is said, and what would go on spending pauses until a person decides."""

from __future__ import annotations

from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import TEAM_BUDGET, BudgetId, StepId, TaskId
from greenroom.core.rules.draft import Draft, Verdict
from greenroom.core.state.budget import LimitReached, LimitsSet
from greenroom.core.state.task import TaskPaused
from greenroom.core.state.team import TeamPaused


def give(draft: Draft, budget: BudgetId, limits: Limits) -> Verdict:
    """Give a budget its limits. Less than nothing is no limit."""
    if not limits.sensible:
        return Rejected(code="bad_limits", why=f"A limit of {budget} is below zero.", hint="Use zero or more, or none.")
    draft.emit(LimitsSet(at=draft.now, budget_id=budget, limits=limits))
    return None


def stop_at(draft: Draft, budget: BudgetId, limit: str, *, task: TaskId, step: StepId) -> None:
    """A step wants more than this budget leaves: the task pauses, or the team when the budget is the team's."""
    draft.emit(LimitReached(at=draft.now, budget_id=budget, limit=limit, step_id=step))
    why = f"limit: {budget} {limit}"
    if budget == TEAM_BUDGET:
        draft.emit(TeamPaused(at=draft.now, why=why))
    else:
        draft.emit(TaskPaused(at=draft.now, task_id=task, why=why))
