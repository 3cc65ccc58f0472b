"""The first step of a job: the project's checks on the files as they are, so that only what newly fails counts."""

from __future__ import annotations

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

NAME: Final = BASELINE
SPEC: Final = ToolSpec(
    name=NAME,
    description="Run the project's checks before anything is changed. The house does that once, at the beginning.",
    parameters={"type": "object", "properties": {}},
)


class Baseline(CardedTool):
    """Keyed: one that was cut off is run again. It runs what the person has, and confirmed."""

    def __init__(self, checker: ProjectChecks) -> None:
        self.card = ToolCard(spec=SPEC, group="command", effect="keyed")
        self._checker = checker

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing that anybody has to be asked about: the person's files, and checks that they have confirmed."""
        return ()

    async def run(self, bench: Bench) -> Outcome:
        """Run them all."""
        report = await self._checker.baseline(bench)
        told = "\n".join((f"Before any change: {in_a_sentence(report)}", *report.left))
        return Outcome(result={"output": told, REPORT: as_data(report)}, blobs=report.blobs)
