"""Budgets: the limits, what is spent, and what is reserved for running steps."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.amounts import NOTHING, UNLIMITED, Amounts, Limits
from greenroom.core.base.ids import BudgetId, StepId
from greenroom.core.base.records import evolve, record

BudgetRoom = Literal["room", "later", "never"]


@record
class Budget:
    """A budget. Amounts are reserved before a step and settled after it, so a limit is never exceeded."""

    budget_id: BudgetId
    limits: Limits = UNLIMITED
    spent: Amounts = NOTHING
    reserved: Amounts = NOTHING


@record
class LimitsSet:
    """A budget got new limits."""

    at: int
    budget_id: BudgetId
    limits: Limits


@record
class Spent:
    """Something was spent without a reservation: a hop."""

    at: int
    budget_id: BudgetId
    amounts: Amounts


@record
class LimitReached:
    """A step or task needed more than its limit leaves."""

    at: int
    budget_id: BudgetId
    limit: str
    step_id: StepId | None


BudgetEvent = LimitsSet | Spent | LimitReached


def check_room(budget: Budget, needs: Amounts) -> BudgetRoom:
    """Return whether `needs` fit now, may fit after other steps settle, or can never fit."""
    if budget.limits is UNLIMITED:
        return "room"
    total = budget.spent.plus(needs)
    if budget.limits.exceeded_by(total.plus(budget.reserved)) is None:
        return "room"
    return "later" if budget.limits.exceeded_by(total) is None else "never"


def reserve(budget: Budget, needs: Amounts) -> Budget:
    """Reserve the possible cost of a step. A budget without limits keeps no reservations."""
    if budget.limits is UNLIMITED:
        return budget
    return evolve(budget, reserved=budget.reserved.plus(needs))


def settle(budget: Budget, reserved: Amounts, spent: Amounts) -> Budget:
    """Replace a reservation by what was really spent."""
    if budget.limits is UNLIMITED:
        return evolve(budget, spent=budget.spent.plus(spent))
    return evolve(budget, reserved=budget.reserved.minus(reserved), spent=budget.spent.plus(spent))
