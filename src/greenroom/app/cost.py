"""The costs of teams, summed from their events. An unknown price counts as unknown, never as zero."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.ids import AgentId, StepId, TeamId, agent_of
from greenroom.core.base.records import evolve, record
from greenroom.core.state.events import Event
from greenroom.core.state.step import StepEnded, StepInterrupted, StepStarted
from greenroom.core.state.task import TaskCreated
from greenroom.core.state.team import TeamForked

CostGrouping = Literal["run", "agent", "model"]
MILLIONTHS_PER_DOLLAR: Final = 1_000_000


@record
class CostSum:
    """Model calls and their cost. `unpriced` calls have an unknown price. `reserved` calls have no believable
    bill, so their cost is estimated."""

    calls: int = 0
    spent: Amounts = NOTHING
    unpriced: int = 0
    reserved: int = 0

    @property
    def dollars(self) -> float | None:
        """The cost of the calls in dollars; None if no call has a known price."""
        return None if self.calls and self.unpriced == self.calls else self.spent.money / MILLIONTHS_PER_DOLLAR

    def plus(self, other: CostSum) -> CostSum:
        return CostSum(
            calls=self.calls + other.calls,
            spent=self.spent.plus(other.spent),
            unpriced=self.unpriced + other.unpriced,
            reserved=self.reserved + other.reserved,
        )


@record
class CallCost:
    """A model call and its cost, with the version and time of its end."""

    version: int
    at: int
    team: TeamId
    agent: AgentId
    model: str
    sum: CostSum

    def name(self, grouping: CostGrouping) -> str:
        """Return the row that the call belongs to."""
        return {"run": str(self.team), "agent": str(self.agent), "model": self.model}[grouping]


class TeamCosts:
    """One team's model calls with their costs, collected event by event. Its name is that of the first task.

    `version` is that of the last event.
    """

    def __init__(self, team: TeamId) -> None:
        self.team = team
        self.name = ""
        self.version = 0
        self.calls: list[CallCost] = []
        self._open_steps: dict[StepId, StepStarted] = {}

    def add_event(self, event: Event, version: int = 0) -> None:
        self.version = version
        match event:
            case StepStarted() if event.terms.effect == "model" or event.terms.model:  # a tool can call a model, too
                self._open_steps[event.step_id] = event
            case StepEnded() | StepInterrupted():
                start = self._open_steps.pop(event.step_id, None)
                if start is not None:
                    self._add_call(start, event)
            case TaskCreated():
                self.name = self.name or event.name
            case TeamForked():
                # The team that this one was forked from has paid for the earlier calls.
                self.calls.clear()
                self._open_steps.clear()
            case _:
                pass

    def _add_call(self, start: StepStarted, end: StepEnded | StepInterrupted) -> None:
        result = (end.result or {}) if isinstance(end, StepEnded) else {}
        spent, reserved, usage = end.spent, start.reserved, result.get("usage")
        is_whole_reservation = (spent.tokens, spent.money) == (reserved.tokens, reserved.money)
        cost = CostSum(
            calls=1,
            spent=evolve(spent, hops=0),
            unpriced=int(spent.tokens > 0 and not is_priced(usage, priced=start.terms.priced)),
            reserved=int(spent.estimated > 0 or ("usage" not in result and spent.tokens > 0 and is_whole_reservation)),
        )
        agent, model = agent_of(end.step_id), str(result.get("by") or start.terms.model)
        call = CallCost(version=self.version, at=end.at, team=self.team, agent=agent, model=model, sum=cost)
        self.calls.append(call)


def is_priced(usage: object, *, priced: bool) -> bool:
    """Return whether the price of a call is known: from its bill, else from the terms of its step."""
    return usage.get("money") is not None if isinstance(usage, dict) else priced


def group_costs(accounts: Iterable[TeamCosts], grouping: CostGrouping) -> dict[str, CostSum]:
    """Return the sums of all teams by the given grouping, most expensive first."""
    return group_calls((call for account in accounts for call in account.calls), grouping)


def group_calls(calls: Iterable[CallCost], grouping: CostGrouping) -> dict[str, CostSum]:
    """Return the sums of model calls by the given grouping, most expensive first."""
    costs: dict[str, CostSum] = {}
    for call in calls:
        name = call.name(grouping)
        costs[name] = costs.get(name, CostSum()).plus(call.sum)
    return dict(sorted(costs.items(), key=lambda row: (-row[1].spent.money, -row[1].spent.tokens, row[0])))


def sum_costs(rows: Iterable[CostSum]) -> CostSum:
    result = CostSum()
    for cost in rows:
        result = result.plus(cost)
    return result


def format_dollars(millionths: int) -> str:
    """Format millionths of a dollar with enough digits to be visible."""
    value = millionths / MILLIONTHS_PER_DOLLAR
    return f"${value:,.2f}" if value >= 1 or not millionths else f"${value:.4f}" if value >= 0.0001 else f"${value:.6f}"
