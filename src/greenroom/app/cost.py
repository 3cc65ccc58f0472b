"""What teams have cost, summed from their events. A price that nobody knows is counted as unknown, never as nothing."""

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

By = Literal["run", "agent", "model"]
MILLION: Final = 1_000_000


@record
class Sum:
    """Model calls and what they cost. `unpriced` of them have an unknown price; `reserved` ended without a bill.

    Those count with all that was set aside for them.
    """

    calls: int = 0
    spent: Amounts = NOTHING
    unpriced: int = 0
    reserved: int = 0

    def plus(self, other: Sum) -> Sum:
        return Sum(
            calls=self.calls + other.calls,
            spent=self.spent.plus(other.spent),
            unpriced=self.unpriced + other.unpriced,
            reserved=self.reserved + other.reserved,
        )


class Account:
    """One team's costs by agent and model, taken event by event. It goes by the name of its first task."""

    def __init__(self, team: TeamId) -> None:
        self.team = team
        self.name = ""
        self.sums: dict[tuple[AgentId, str], Sum] = {}
        self._open: dict[StepId, StepStarted] = {}

    def take(self, event: Event) -> None:
        """One more event of the team."""
        match event:
            case StepStarted() if event.terms.effect == "model" or event.terms.model:  # a tool may ask one, too
                self._open[event.step_id] = event
            case StepEnded() | StepInterrupted():
                begun = self._open.pop(event.step_id, None)
                if begun is not None:
                    self._settle(begun, event)
            case TaskCreated():
                self.name = self.name or event.name
            case TeamForked():
                # What was before has been paid for by the team that this one is a copy of.
                self.sums.clear()
                self._open.clear()
            case _:
                pass

    def _settle(self, begun: StepStarted, end: StepEnded | StepInterrupted) -> None:
        result = (end.result or {}) if isinstance(end, StepEnded) else {}
        key = (agent_of(end.step_id), str(result.get("by") or begun.terms.model))
        spent, reserved, usage = end.spent, begun.reserved, result.get("usage")
        # Whether somebody knows what it cost: the bill if there is one, else the terms it ran under.
        priced = usage.get("money") is not None if isinstance(usage, dict) else begun.terms.priced
        whole = (spent.tokens, spent.money) == (reserved.tokens, reserved.money)
        one = Sum(
            calls=1,
            spent=evolve(spent, hops=0),
            unpriced=int(spent.tokens > 0 and not priced),
            reserved=int("usage" not in result and spent.tokens > 0 and whole),
        )
        self.sums[key] = self.sums.get(key, Sum()).plus(one)


def summed(accounts: Iterable[Account], by: By) -> dict[str, Sum]:
    """The sums of all accounts by what each row is to be about, the dearest first."""
    found: dict[str, Sum] = {}
    for account in accounts:
        for (agent, model), one in account.sums.items():
            name = {"run": str(account.team), "agent": str(agent), "model": model}[by]
            found[name] = found.get(name, Sum()).plus(one)
    return dict(sorted(found.items(), key=lambda row: (-row[1].spent.money, -row[1].spent.tokens, row[0])))


def total(rows: Iterable[Sum]) -> Sum:
    found = Sum()
    for one in rows:
        found = found.plus(one)
    return found


def dollars(money: int) -> str:
    """Millionths of a dollar, with as many digits as it takes to see them."""
    value = money / MILLION
    return f"${value:,.2f}" if value >= 1 or not money else f"${value:.4f}" if value >= 0.0001 else f"${value:.6f}"
