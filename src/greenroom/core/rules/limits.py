"""At a limit: it is said, and whatever would go on spending is paused until a person decides."""

from __future__ import annotations

from greenroom.core.base.ids import TEAM_BUDGET, BudgetId, StepId, TaskId
from greenroom.core.rules.draft import Draft
from greenroom.core.state.budget import LimitReached
from greenroom.core.state.task import TaskPaused
from greenroom.core.state.team import TeamPaused


def stop_at(draft: Draft, budget: BudgetId, limit: str, *, task: TaskId, step: StepId) -> None:
    """A step wants more than this budget leaves: the task pauses, or the team when the budget is the team's."""
    draft.emit(LimitReached(at=draft.now, budget_id=budget, limit=limit, step_id=step))
    why = f"limit: {budget} {limit}"
    if budget == TEAM_BUDGET:
        draft.emit(TeamPaused(at=draft.now, why=why))
    else:
        draft.emit(TaskPaused(at=draft.now, task_id=task, why=why))
