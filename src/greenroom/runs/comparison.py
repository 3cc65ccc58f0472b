"""Rank finished runs of one request. The first difference that counts decides, so the reason is one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from greenroom.core.base.records import record
from greenroom.core.ports.workspace import PathChange
from greenroom.runs.verdict import Verdict

RunOutcome = Literal["verified", "unverified", "failed", "nothing"]
Criterion = Literal["outcome", "missing", "new_failures", "review", "lines", "cost", "equal"]
OUTCOMES: Final[Sequence[RunOutcome]] = ("verified", "unverified", "failed", "nothing")
"""From the best to the worst. `nothing`: no file changed."""


@record
class CandidateRun:
    """A finished run. `review_score` is the last of its reviewers, 0 to 100; `cost` is in dollars, None if a price is
    unknown. `new_failures` counts tests, and checks that cannot run any more. `missing_subtasks` of a team are not in
    its change. `base` is the tree that it started from."""

    team: str
    verdict: RunOutcome = "verified"
    request: str = ""
    base: str = ""
    passed: int = 0
    new_failures: int = 0
    missing_subtasks: int = 0
    review_score: int | None = None
    files: int = 0
    added: int = 0
    removed: int = 0
    cost: float | None = None
    seconds: float = 0.0


MEASURES: Final[Mapping[Criterion, Callable[[CandidateRun], float | None]]] = {
    "outcome": lambda run: OUTCOMES.index(run.verdict),
    "missing": lambda run: run.missing_subtasks,
    "new_failures": lambda run: run.new_failures,
    "review": lambda run: None if run.review_score is None else -run.review_score,
    "lines": lambda run: run.added + run.removed,
    "cost": lambda run: run.cost,
}
"""What counts, in this order; less is better."""


def judge_outcome(state: str, verdict: Verdict, changes: Sequence[PathChange]) -> RunOutcome:
    """Return the outcome of a run whose task ended in this state."""
    if not changes:
        return "nothing"
    return verdict.state if state == "finished" else "failed"


def count_failures(verdict: Verdict) -> int:
    """Return how many tests fail that did not before. A check without names, or that cannot run, counts as one."""
    return sum(max(reason.count, 1) for reason in verdict.reasons if reason.code in ("new_failures", "cannot_run_now"))


def rank_candidates(runs: Sequence[CandidateRun]) -> tuple[CandidateRun, ...]:
    """Return the runs, best first. Equal ones are in the order of their ids."""
    counted = [MEASURES[name] for name in _find_criteria(runs)]
    return tuple(sorted(runs, key=lambda run: (*(measure(run) or 0 for measure in counted), run.team)))


def find_difference(better: CandidateRun, worse: CandidateRun, runs: Sequence[CandidateRun]) -> Criterion:
    """Return the first difference that counts between two of the runs."""
    found = (name for name in _find_criteria(runs) if MEASURES[name](better) != MEASURES[name](worse))
    return next(found, "equal")


def _find_criteria(runs: Iterable[CandidateRun]) -> Sequence[Criterion]:
    """Return what is known of all runs: a score that only some have decides nothing."""
    known = tuple(runs)
    return [name for name, measure in MEASURES.items() if all(measure(run) is not None for run in known)]
