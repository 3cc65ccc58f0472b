"""What the log of the story's run says, read by whoever did not write it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from greenroom.app.checks.receipts import reports
from greenroom.app.lookup import LAST, find
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.records import record
from greenroom.core.ports.checks import Checked
from greenroom.core.state.events import Event
from greenroom.core.state.step import Step, StepEnded
from greenroom.core.state.team import OwnerChanged

CHECKING: Final = ("baseline", "deliver", "run_checks")
"""The steps in which checks run."""


@record
class Log:
    """One run: its events, the steps that ended, in their order, and those that were begun and did not."""

    team: TeamId
    events: tuple[Event, ...]
    steps: tuple[Step, ...]
    running: tuple[Step, ...]

    def of(self, *executors: str) -> Sequence[Step]:
        """The ended steps in which these were used."""
        return [one for one in self.steps if one.work.executor in executors]

    @property
    def owners(self) -> Sequence[str]:
        """The processes that took it over, one after the other."""
        return [one.owner for one in self.events if isinstance(one, OwnerChanged)]

    @property
    def endings(self) -> Counter[StepId]:
        """How often each step ended."""
        return Counter(one.step_id for one in self.events if isinstance(one, StepEnded))

    @property
    def checked(self) -> Sequence[Checked]:
        """Every check that ran, the one on the base first."""
        return [check for _, report in reports(self.steps) for check in report.checks]

    def millis(self, *, checks: bool) -> int:
        """How long the steps took that run checks, or those that wait for the model."""
        if checks:
            return sum(one.spent.millis for one in self.of(*CHECKING))
        return sum(one.spent.millis for one in self.steps if one.work.type == "skill")


async def read(home: Path) -> Log:
    """The newest run of this home. `Refused` when there is none."""
    runtime = await Runtime.open(home, access="look")
    try:
        team = (await find(runtime, LAST)).team
        world = await runtime.world(team)
        return Log(
            team=team,
            events=tuple([one.event async for one in runtime.events(team)]),
            steps=tuple([one async for one in runtime.archive(team, "step") if isinstance(one, Step)]),
            running=tuple(one for one in world.steps.values() if one.state == "running"),
        )
    finally:
        await runtime.close()
