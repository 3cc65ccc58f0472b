"""What a plan takes: time, tokens and money as ranges with their basis, and whether a team is worth it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Final

from greenroom.core.base.errors import translate
from greenroom.core.base.records import evolve, record
from greenroom.teamwork.plan import Estimate, Plan, PlannedSubtask, Range, Strategy, TeamDecision, TeamSettings
from greenroom.teamwork.plan_graph import add_barriers, build_phases, find_disjoint_write_sets

MERGE_SECONDS: Final = 5.0
"""How long it takes to merge one subtask's work, if no past run has measured it."""

TOKENS_PER_SECOND: Final = 250
"""Tokens of a specialist that has not run yet, for each second of its expected time."""

SPREAD: Final[Mapping[bool, tuple[float, float]]] = {True: (0.8, 1.3), False: (0.7, 1.8)}
"""How far a range reaches to both sides, for measured values and for defaults."""

Price = Callable[[str, float], float | None]
"""Gives the dollars for a number of tokens of a profile, None if its price is not known."""


@record
class Basis:
    """What one subtask of a profile took on average. `runs` is over how many, `cost` is in dollars."""

    seconds: float
    tokens: float
    cost: float | None = None
    runs: int = 0


@record
class PastMerges:
    """What merging took in past runs of a workspace, and how many subtasks (`held` of `planned`) kept to their write
    set. `unplanned` counts the files that were changed without being planned."""

    merges: int = 0
    seconds: float = 0.0
    conflicts: int = 0
    planned: int = 0
    held: int = 0
    unplanned: Mapping[str, int] = {}

    @property
    def often(self) -> tuple[str, ...]:
        """The files that were changed without being planned more than once, the most frequent first."""
        return tuple(path for path, count in sorted(self.unplanned.items(), key=lambda row: -row[1]) if count > 1)

    def plus(self, other: PastMerges) -> PastMerges:
        """Return the sums of both."""
        paths = dict.fromkeys((*self.unplanned, *other.unplanned))
        return PastMerges(
            merges=self.merges + other.merges,
            seconds=round(self.seconds + other.seconds, 3),
            conflicts=self.conflicts + other.conflicts,
            planned=self.planned + other.planned,
            held=self.held + other.held,
            unplanned={path: self.unplanned.get(path, 0) + other.unplanned.get(path, 0) for path in paths},
        )


def estimate_plan(
    plan: Plan,
    measured: Mapping[str, Basis] | None = None,
    price: Price = lambda agent, tokens: None,
    strategy: Strategy = "priority-based",
    past: PastMerges | None = None,
) -> Estimate:
    """Return the estimate of a plan without faults. `measured` has the averages of past runs by profile, `past` what
    their merges took.

    The ratio is the share of the work that is in phases with more than one subtask.
    """
    plan = use_measured(plan, measured or {})
    basis = {subtask.id: _find_basis(subtask, measured or {}) for subtask in plan.subtasks}
    seconds = {subtask.id: float(subtask.seconds) for subtask in plan.subtasks}
    serial = sum(seconds.values())
    together = [name for phase in build_phases(plan, strategy) if phase.can_parallelize for name in phase.subtasks]
    critical = _simulate(plan, seconds, strategy, limit=len(seconds) or 1)
    each = past.seconds / past.merges if past is not None and past.merges else MERGE_SECONDS
    merge = round(each * sum(len(group) for group in find_disjoint_write_sets(plan)), 3)
    real = _simulate(plan, seconds, strategy, limit=plan.max_concurrent) + merge
    is_measured = {part.runs > 0 for part in basis.values()}
    spread = SPREAD[is_measured == {True}]
    parts = [(subtask.agent, basis[subtask.id]) for subtask in plan.subtasks]
    costs = [price(agent, part.tokens) if part.cost is None else part.cost for agent, part in parts]
    known = [cost for cost in costs if cost is not None]
    return Estimate(
        seconds=_spread(real, spread),
        tokens=_spread(sum(part.tokens for part in basis.values()), spread),
        cost=_spread(sum(known), spread) if costs and len(known) == len(costs) else None,
        agents=len(plan.subtasks),
        parallelizable_ratio=round(sum(seconds[name] for name in together) / serial, 3) if serial else 0.0,
        serial_seconds=serial,
        critical_seconds=critical,
        merge_seconds=merge,
        gain=round(serial / (critical + merge), 2) if serial else 1.0,
        basis="mixed" if len(is_measured) > 1 else "past_runs" if is_measured == {True} else "profiles",
    )


def use_measured(plan: Plan, measured: Mapping[str, Basis]) -> Plan:
    """Return the plan with the times of past runs, in whole seconds, where there are some."""
    found = ((subtask, _find_basis(subtask, measured)) for subtask in plan.subtasks)
    times = (
        evolve(subtask, seconds=max(1, round(basis.seconds)) if basis.runs else subtask.seconds)
        for subtask, basis in found
    )
    return evolve(plan, subtasks=tuple(times))


def _find_basis(subtask: PlannedSubtask, measured: Mapping[str, Basis]) -> Basis:
    found = measured.get(subtask.agent)
    default = Basis(seconds=float(subtask.seconds), tokens=float(subtask.seconds * TOKENS_PER_SECOND))
    return found if found and found.runs else default


def _spread(value: float, factors: tuple[float, float]) -> Range:
    return Range(low=round(value * factors[0], 4), high=round(value * factors[1], 4))


def _simulate(plan: Plan, seconds: Mapping[str, float], strategy: Strategy, limit: int) -> float:
    """Return when the last subtask ends if `limit` run at the same time and the lowest priority starts first."""
    waits = {name: set(needs) for name, needs in add_barriers(plan, strategy).items()}
    waiting = sorted(plan.subtasks, key=lambda subtask: subtask.priority)
    running: list[tuple[float, str]] = []
    now, done = 0.0, set[str]()
    while waiting or running:
        for subtask in [subtask for subtask in waiting if waits[subtask.id] <= done][: max(1, limit) - len(running)]:
            waiting.remove(subtask)
            heappush(running, (now + seconds[subtask.id], subtask.id))
        now, name = heappop(running)
        done.add(name)
    return now


def decide_team(plan: Plan, estimate: Estimate, settings: TeamSettings) -> TeamDecision:
    """Return whether a team is worth it, with the reason."""
    count, sets = len(plan.subtasks), len(find_disjoint_write_sets(plan))
    ratio, least = estimate.parallelizable_ratio, settings.parallelization_threshold
    if not settings.enabled:
        return _decide("plan.single_disabled")
    if count < settings.min_subtasks:
        return _decide("plan.single_few_subtasks", count=count, least=settings.min_subtasks)
    if sets < 2:
        return _decide("plan.single_one_write_set")
    if ratio < least:
        return _decide("plan.single_low_ratio", ratio=f"{ratio * 100:.0f}", least=f"{least * 100:.0f}")
    if estimate.gain < 1:
        return _decide("plan.single_slower", gain=f"{estimate.gain:.2f}")
    return _decide("plan.team", sets=sets, ratio=f"{ratio * 100:.0f}", gain=f"{estimate.gain:.1f}")


def _decide(message: str, **values: object) -> TeamDecision:
    code = message.removeprefix("plan.")
    return TeamDecision(is_team=code == "team", code=code, reason=translate(message, **values))
