"""What an organisation is allowed anew because a person did something: to write more messages, and to ask a provider
once more that was in the way."""

from __future__ import annotations

from typing import Final

from greenroom.app.organisation.names import BASE
from greenroom.app.standing import pause_word
from greenroom.core.base.ids import task_budget
from greenroom.core.base.records import evolve
from greenroom.core.rules.intents import ResumeTask, SetLimits
from greenroom.core.state.world import World

HOPS: Final = 500
"""Messages, in all tasks together. Agents that only write to each other would never end; it is more than work has ever
needed, and what goes on after them, a person lets go on."""


def more_messages(world: World) -> tuple[SetLimits, ...]:
    """Give it all of them again, because a person did something; nothing while it has more than half of them left."""
    budget = world.budgets.get(task_budget(BASE))
    if budget is None or (budget.limits.hops or 0) > budget.spent.hops + HOPS // 2:
        return ()
    limits = evolve(budget.limits, hops=budget.spent.hops + HOPS)
    return (SetLimits(budget_id=budget.budget_id, limits=limits),)


def tried_again(world: World) -> tuple[ResumeTask, ...]:
    """Let go on what stands still because of a provider: what was in its way then may be gone by now."""
    held = (one.task_id for one in world.tasks.values() if pause_word(one.paused or "") == "provider")
    return tuple(ResumeTask(task_id=one) for one in sorted(held))
