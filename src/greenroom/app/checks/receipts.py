"""Receipts: what the log proves of the checks, read from its steps. What a model says of them counts for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from greenroom.core.base.ids import StepId
from greenroom.core.base.records import record
from greenroom.core.ports.checks import REPORT, Checked, Report, from_data
from greenroom.core.state.step import Step

EDITS: Final = frozenset({"patch", "rewrite"})
"""The tools that change files. What commands change is seen in the tree's name."""

MAY_CHANGE: Final = EDITS | {"execute_script"}
"""With those that may."""

BASELINE: Final = "baseline"
DELIVER: Final = "deliver"
"""The house's own steps, in which checks run that count. What an agent runs by itself tells it how it stands, no more:
it may have put something there that makes them pass and that nobody is given."""

FIRST_CHECKS: Final = "first_checks"
"""Where a delivery has the checks of the work's own that a person is asked about."""

VERDICT: Final = "verdict"
"""Where the result of `deliver` says what was proven."""

STANDS: Final = "stands"
"""Where a verdict in the log says that what was said may stand."""

ASKING: Final = (
    'If an answer is all that you want, say so: `greenroom run --question "…"`; or ask a model: `greenroom ask "…"`.'
)
"""What to do where no check can prove anything, because nothing was changed."""

Outcome = Literal["clean", "new_failures", "changed_files", "could_not_run"]


@record
class Receipt:
    """One check that ran, on which tree, in which step; `late` says that no step changed a file after it."""

    check: str
    outcome: Outcome
    exit: int | None
    tree: str
    step: StepId
    when: int
    checked: Checked
    late: bool = True


def report_in(step: Step) -> Report | None:
    """The report that a step has in its result; None if it has none that can be read."""
    return from_data((step.result or {}).get(REPORT))


def reports(steps: Iterable[Step]) -> tuple[tuple[Step, Report], ...]:
    """All reports in these steps, in their order. A step that did not come to its end proves nothing."""
    every = ((step, report_in(step)) for step in steps if step.state == "finished")
    return tuple((step, report) for step, report in every if report is not None)


def base_report(steps: Iterable[Step]) -> Report | None:
    """The report of the base; of several the first: later ones ran on what the work had changed."""
    every = reports(steps)
    return next((report for step, report in every if report.base and step.work.executor == BASELINE), None)


def receipts(steps: Sequence[Step]) -> tuple[Receipt, ...]:
    """Every run of a check that counts, oldest first: those of the house itself, on a fresh copy of the work."""
    edited = max((at for at, step in enumerate(steps) if _changed_files(step)), default=-1)
    places = {step.step_id: at for at, step in enumerate(steps)}
    return tuple(
        Receipt(
            check=one.check,
            outcome=_outcome(one),
            exit=one.exit,
            tree=one.tree,
            step=step.step_id,
            when=step.ended_at or 0,
            checked=one,
            late=places[step.step_id] > edited,
        )
        for step, report in reports(steps)
        if report.fresh and step.work.executor == DELIVER
        for one in report.checks
    )


def _changed_files(step: Step) -> bool:
    """Whether it may have: one that is in doubt counts."""
    if step.work.executor not in EDITS:
        return False
    return step.state in ("finished", "uncertain", "cancelled")


def _outcome(one: Checked) -> Outcome:
    if one.outcome == "could_not_run":
        return "could_not_run"
    if one.clean:
        return "clean"
    return "changed_files" if not one.steady else "new_failures"
