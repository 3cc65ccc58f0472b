"""`run_checks`: run the project's checks on the work as it is now, and read what newly fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from greenroom.abilities.tools.checks.telling import told
from greenroom.abilities.tools.output.given import fitted, given
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.checks import REPORT, Check, Checker, as_data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World

NAME: Final = "run_checks"
DESCRIPTION: Final = (
    "Run the project's own checks (tests, types, lint) on the files as they are now. Use it after you have changed "
    "something and before you say that it is done. When you say so the house runs them again, on a fresh copy of what "
    "you deliver, and only that counts as proof: what git ignores and what you have installed is not there. It says "
    "what newly fails because of the work, and what already failed before, which is not yours to mend unless you were "
    "asked to. Do not use it to look around or to run one command: execute_script does that. "
    'Example: {"only": ["pytest"]}'
)
NONE: Final = (
    "This project has no checks that can be run, or had none when this began. What you set up yourself you can run "
    "with execute_script; when you are done a person is asked whether it counts. Else say how the work can be checked."
)
SCHEMA: Final[Data] = {
    "type": "object",
    "properties": {
        "only": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Names of checks, as an earlier result names them; without it all are run.",
        }
    },
    "additionalProperties": False,
}


class Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """Which checks."""

    only: list[str] = []


class RunChecks:
    """Keyed: checks change nothing that counts, so one that was cut off is run again, once its processes are dead."""

    type: StepType = "tool"
    name: str = NAME
    description: str = DESCRIPTION

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        # Each check has its own limit of time, so the card has none. Where there is no check, nothing is ever run.
        spec = ToolSpec(name=self.name, description=self.description, parameters=SCHEMA)
        self.card = ToolCard(spec=spec, group="command", effect="keyed" if checker.checks else "pure")

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """The command lines: they run code that an agent may have written, and are decided about like any other."""
        try:
            chosen = self._chosen(fitted(Wanted, arguments, self.name).only)
        except ModelFault:
            chosen = tuple(self._checker.checks)
        return tuple(Target(kind="command", value=one.line) for one in chosen)

    def terms(self, _: World, __: Step) -> Terms:
        """As the card says. Whether at all is the policy's word."""
        return Terms(effect=self.card.effect)

    async def run(self, bench: Bench) -> Outcome:
        """Run them, one after the other."""
        only = given(Wanted, bench.step).only
        if not self._chosen(only):
            raise ModelFault(NONE)
        report = await self._checker.run(only, bench)
        return Outcome(result={"output": told(report), REPORT: as_data(report)}, blobs=report.blobs)

    def _chosen(self, only: Sequence[str]) -> tuple[Check, ...]:
        names = [one.name for one in self._checker.checks]
        odd = next((one for one in only if one not in names), None)
        if odd is not None:
            raise ModelFault(f"There is no check {odd!r}. There are: {', '.join(names) or 'none'}.")
        return tuple(one for one in self._checker.checks if not only or one.name in only)
