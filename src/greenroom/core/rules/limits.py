"""Limits: setting them, and pausing at them until a person decides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from greenroom.core.base.amounts import Amounts, Limits
from greenroom.core.base.errors import reject
from greenroom.core.base.ids import TEAM_BUDGET, BudgetId, StepId, TaskId
from greenroom.core.base.records import evolve
from greenroom.core.rules.draft import Draft, RuleResult
from greenroom.core.state.budget import Budget, LimitReached, LimitsSet
from greenroom.core.state.step import Step, StepTerms
from greenroom.core.state.task import TaskPaused
from greenroom.core.state.team import TeamPaused
from greenroom.core.state.team_state import TeamState

DEFAULT_WORKING_TIME_MS: Final = 600_000
"""Working time in ms of a step whose terms name none, if working time is limited: ten minutes."""

MIN_WORKING_TIME_MS: Final = 60_000
"""Minimum working time in ms. A step that would get less because of reservations waits until they settle."""


def set_budget_limits(draft: Draft, budget: BudgetId, limits: Limits) -> RuleResult:
    """Set a budget's limits. Reject negative ones."""
    if not limits.is_valid:
        return reject("bad_limits", "A limit of {budget} is below zero.", "Use zero or more, or none.", budget=budget)
    draft.emit(LimitsSet(at=draft.now, budget_id=budget, limits=limits))
    return None


def pause_at_limit(draft: Draft, budget: BudgetId, limit: str, *, task: TaskId, step: StepId) -> None:
    """Pause the task whose step needs more than the budget leaves, or the team if it is the team's budget."""
    draft.emit(LimitReached(at=draft.now, budget_id=budget, limit=limit, step_id=step))
    why = f"limit: {budget} {limit}"
    if budget == TEAM_BUDGET:
        draft.emit(TeamPaused(at=draft.now, why=why))
    else:
        draft.emit(TaskPaused(at=draft.now, task_id=task, why=why))


def compute_reservation(terms: StepTerms, time: int | None) -> Amounts:
    """Return what a start reserves: its terms, one step, and working time if limited."""
    needs = terms.needs
    if time is None:
        return evolve(needs, steps=needs.steps + 1)
    return evolve(needs, steps=needs.steps + 1, millis=time)


def compute_working_time(budgets: Iterable[Budget], terms: StepTerms) -> int | None:
    """Return how long an attempt may work under these budgets; None if they do not limit it.

    It is what the terms say, else ten minutes, but never more than is left. If too little is left, it is the minimum
    that the step would need; `check_room` then says that it does not fit.
    """
    left = free = None
    for budget in budgets:
        limit = budget.limits.millis
        if limit is not None:
            rest = limit - budget.spent.millis
            left = rest if left is None else min(left, rest)
            free = rest - budget.reserved.millis if free is None else min(free, rest - budget.reserved.millis)
    if left is None or free is None:
        return None
    needed_ms = terms.needs.millis or DEFAULT_WORKING_TIME_MS
    return max(min(needed_ms, free), min(needed_ms, left, MIN_WORKING_TIME_MS), 1)


def find_time_budget(state: TeamState, step: Step) -> BudgetId | None:
    """Return the budget with the least working time left, or None."""
    names = state.budgets_of(step.task_id, step.agent_id)
    rest = {
        name: limit - state.budgets[name].spent.millis
        for name in names
        if (limit := state.budgets[name].limits.millis) is not None
    }
    return min(rest, key=rest.__getitem__, default=None)
