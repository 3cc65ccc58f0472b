"""Limits: how they are given; at one it is said, and what would go on spending pauses until a person decides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from greenroom.core.base.amounts import Amounts, Limits
from greenroom.core.base.errors import Rejected
from greenroom.core.base.ids import TEAM_BUDGET, BudgetId, StepId, TaskId
from greenroom.core.base.records import evolve
from greenroom.core.rules.draft import Draft, Verdict
from greenroom.core.state.budget import Budget, LimitReached, LimitsSet
from greenroom.core.state.step import Step, Terms
from greenroom.core.state.task import TaskPaused
from greenroom.core.state.team import TeamPaused
from greenroom.core.state.world import World

WORKING_TIME: Final = 600_000
"""Milliseconds a step gets where working time has a limit and its terms do not say how long it needs: ten minutes."""

LEAST_TIME: Final = 60_000
"""Milliseconds. Whoever could have less only because others have reserved the rest waits until they settle."""


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


def needed(terms: Terms, time: int | None) -> Amounts:
    """What a start reserves: what its terms say, one step, and working time where that has a limit."""
    needs = terms.needs
    if time is None:
        return evolve(needs, steps=needs.steps + 1)
    return evolve(needs, steps=needs.steps + 1, millis=time)


def working_time(budgets: Iterable[Budget], terms: Terms) -> int | None:
    """How long an attempt may work under these budgets; None when none of them limits that.

    What its terms say, else ten minutes, but never more than is left. Where that is nothing or only a crumb, the answer
    is what it would need at least: then `room` says that it does not fit, now or ever.
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
    wanted = terms.needs.millis or WORKING_TIME
    return max(min(wanted, free), min(wanted, left, LEAST_TIME), 1)


def time_limit(world: World, step: Step) -> BudgetId | None:
    """Which budget of the step limits working time most closely, if any does."""
    names = world.budgets_of(step.task_id, step.agent_id)
    rest = {
        name: limit - world.budgets[name].spent.millis
        for name in names
        if (limit := world.budgets[name].limits.millis) is not None
    }
    return min(rest, key=rest.__getitem__, default=None)
