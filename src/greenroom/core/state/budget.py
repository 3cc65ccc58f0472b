"""Budgets: how much may be spent, how much is, how much is reserved for what runs now."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.amounts import NOTHING, UNLIMITED, Amounts, Limits
from greenroom.core.base.ids import BudgetId, StepId
from greenroom.core.base.records import evolve, record

Room = Literal["room", "later", "never"]


@record
class Budget:
    """Reserved before, settled after, so a hard cap is never exceeded."""

    budget_id: BudgetId
    limits: Limits = UNLIMITED
    spent: Amounts = NOTHING
    reserved: Amounts = NOTHING


@record
class LimitsSet:
    """The budget has these limits from now on."""

    at: int
    budget_id: BudgetId
    limits: Limits


@record
class Spent:
    """Something was spent that no step reserved: a hop."""

    at: int
    budget_id: BudgetId
    amounts: Amounts


@record
class LimitReached:
    """Work wants more than the limit leaves."""

    at: int
    budget_id: BudgetId
    limit: str
    step_id: StepId | None


BudgetEvent = LimitsSet | Spent | LimitReached


def room(budget: Budget, needs: Amounts) -> Room:
    """Whether `needs` fit now, may fit once others settle, or can never fit."""
    if budget.limits is UNLIMITED:
        return "room"
    wanted = budget.spent.plus(needs)
    if budget.limits.exceeded_by(wanted.plus(budget.reserved)) is None:
        return "room"
    return "later" if budget.limits.exceeded_by(wanted) is None else "never"


def reserve(budget: Budget, needs: Amounts) -> Budget:
    """Set aside what a step may cost. Without limits nothing needs setting aside."""
    if budget.limits is UNLIMITED:
        return budget
    return evolve(budget, reserved=budget.reserved.plus(needs))


def settle(budget: Budget, reserved: Amounts, spent: Amounts) -> Budget:
    """The reservation goes, what was really spent stays."""
    if budget.limits is UNLIMITED:
        return evolve(budget, spent=budget.spent.plus(spent))
    return evolve(budget, reserved=budget.reserved.minus(reserved), spent=budget.spent.plus(spent))
