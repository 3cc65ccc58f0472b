"""The first step of a job: the project's checks on the files as they are, so that only what newly fails counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from greenroom.abilities.checks.comparing import in_a_sentence
from greenroom.abilities.tools.carded import CardedTool
from greenroom.app.checks.checker import ProjectChecks
from greenroom.app.checks.receipts import BASELINE
from greenroom.core.base.records import Data, encode
from greenroom.core.ports.checks import REPORT, Check, as_data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.ports.workspace import Worktree
from greenroom.core.state.step import Step

NAME: Final = BASELINE
FOUND: Final = "found"
"""Where its result has the checks that the project has, whole: they judge the work however the folder changes."""

LITTER: Final = "litter"
"""Where its result has what the checks make beside what they check."""

UNKNOWN: Final = "What passed before the work is not known: that step failed. Begin anew once its reason is gone."
FEW: Final = 5
SPEC: Final = ToolSpec(
    name=NAME,
    description="Run the project's checks before anything is changed. The house does that once, at the beginning.",
    parameters={"type": "object", "properties": {}},
)


class Baseline(CardedTool):
    """Keyed: one that was cut off is run again. It runs what the person has, and confirmed."""

    def __init__(self, checker: ProjectChecks, worktree: Worktree, found: Sequence[Check] = ()) -> None:
        self.card = ToolCard(spec=SPEC, group="command", effect="keyed")
        self._found = msgspec.json.decode(encode(tuple(found)))
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
        result = {"output": told, REPORT: as_data(report), LITTER: list(litter), FOUND: self._found}
        return Outcome(result=result, blobs=report.blobs)


def found_in(steps: Iterable[Step]) -> tuple[Check, ...] | None:
    """The checks that the project had when the work began; None if nobody has written that down."""
    held = [(one.result or {}).get(FOUND) for one in steps if one.work.executor == NAME and one.state == "finished"]
    return next((msgspec.convert(one, tuple[Check, ...]) for one in held if one is not None), None)


def unknown_base(steps: Iterable[Step]) -> tuple[str, ...]:
    """That nobody knows what passed before the work, where finding out has failed."""
    ended = {one.state for one in steps if one.work.executor == NAME}
    return (UNKNOWN,) if "failed" in ended and "finished" not in ended else ()


def litter_in(steps: Iterable[Step]) -> tuple[str, ...]:
    """What the checks have made beside what they check, before anybody worked."""
    found = [(one.result or {}).get(LITTER) for one in steps if one.work.executor == NAME and one.state == "finished"]
    return tuple(dict.fromkeys(str(name) for one in found if isinstance(one, list) for name in one))


def _told(litter: Sequence[str]) -> tuple[str, ...]:
    named = ", ".join(litter[:FEW]) + (f" and {len(litter) - FEW:,} more" if len(litter) > FEW else "")
    return (f"The checks make {named} by themselves: no part of the work.",) if litter else ()
