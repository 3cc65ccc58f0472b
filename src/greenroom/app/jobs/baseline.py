"""The first step of a job: the project's checks on the files as they are, so that only what newly fails counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from greenroom.abilities.checks.comparing import in_a_sentence
from greenroom.abilities.tools.carded import CardedTool
from greenroom.app.checks.checker import ProjectChecks
from greenroom.app.checks.receipts import BASELINE
from greenroom.core.base.records import Data
from greenroom.core.ports.checks import REPORT, as_data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.ports.workspace import Worktree
from greenroom.core.state.step import Step

NAME: Final = BASELINE
LITTER: Final = "litter"
"""Where its result has what the checks make beside what they check."""

FEW: Final = 5
SPEC: Final = ToolSpec(
    name=NAME,
    description="Run the project's checks before anything is changed. The house does that once, at the beginning.",
    parameters={"type": "object", "properties": {}},
)


class Baseline(CardedTool):
    """Keyed: one that was cut off is run again. It runs what the person has, and confirmed."""

    def __init__(self, checker: ProjectChecks, worktree: Worktree) -> None:
        self.card = ToolCard(spec=SPEC, group="command", effect="keyed")
        self._checker = checker
        self._worktree = worktree

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing that anybody has to be asked about: the person's files, and checks that they have confirmed."""
        return ()

    async def run(self, bench: Bench) -> Outcome:
        """Run them all. What they make beside is no work of anybody, neither now nor when they are run again."""
        report = await self._checker.baseline(bench)
        litter = await self._worktree.settle()
        told = "\n".join((f"Before any change: {in_a_sentence(report)}", *report.left, *_told(litter)))
        return Outcome(result={"output": told, REPORT: as_data(report), LITTER: list(litter)}, blobs=report.blobs)


def litter_in(steps: Iterable[Step]) -> tuple[str, ...]:
    """What the checks have made beside what they check, before anybody worked."""
    found = [(one.result or {}).get(LITTER) for one in steps if one.work.executor == NAME and one.state == "finished"]
    return tuple(dict.fromkeys(str(name) for one in found if isinstance(one, list) for name in one))


def _told(litter: Sequence[str]) -> tuple[str, ...]:
    named = ", ".join(litter[:FEW]) + (f" and {len(litter) - FEW:,} more" if len(litter) > FEW else "")
    return (f"The checks make {named} by themselves: no part of the work.",) if litter else ()
