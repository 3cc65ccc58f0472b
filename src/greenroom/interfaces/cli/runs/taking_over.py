"""Taking over what came of a job at once, because that was ordered with it: only what is verified."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from rich.console import RenderableType

from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data, evolve, record
from greenroom.interfaces.cli.asked import taking
from greenroom.interfaces.cli.display.output import Output
from greenroom.interfaces.cli.display.progress import Progress
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.loading import load
from greenroom.interfaces.cli.runs.session import Door

if TYPE_CHECKING:
    from greenroom.app.jobs.report import JobReport

UNVERIFIED: Final = "Not applied: it is not verified."
UNFINISHED: Final = "Not applied: the run is not over yet. When it is, use `greenroom apply` or `greenroom branch`."
NOTHING: Final = "Nothing was changed, so there is nothing to apply."
FAILED: Final = "Verified, but not applied"
HALF: Final = "Verified and applied, but not committed"


@record
class Taken:
    """`fields` say for programs what was done. `done` says that nothing is left to be decided; `fault` why it failed
    although the work is good, or that there is none: who orders it to be taken over waits for a change."""

    fields: Data
    done: bool = False
    fault: str = ""


class Aside(Output):
    """What one command says that is done inside another: people hear it as progress, and its result is kept."""

    def __init__(self, progress: Progress) -> None:
        super().__init__("text", io.StringIO())
        self.fields: Data = {}
        self._progress = progress

    def show(self, *what: RenderableType) -> None:
        """Tell it beside the answer."""
        for one in what:
            self._progress.note(str(one))

    def result(self, status: str, code: Exit, /, **fields: object) -> Exit:
        """Keep it: the whole has a result of its own."""
        self.fields = {"status": status, **fields}
        return code


async def taken(door: Door, team: TeamId, take: taking.Apply | taking.Branch, report: JobReport) -> Taken:
    """Do it if it may be done, and say what came of that."""
    if not report.diff.changes:
        return Taken(fields={"status": "not_taken", "why": NOTHING}, done=True)
    if not report.verified:
        return left(door, UNVERIFIED)
    aside = Aside(door.progress)
    act = cast("Callable[[Door, taking.Taking], Awaitable[Exit]]", load("commands.taking", type(take).__name__.lower()))
    try:
        code = await act(replace(door, out=aside), evolve(take, name=team))
    except GreenroomError as error:
        return Taken(fields={"status": "not_taken", "why": str(error)}, fault=f"{FAILED}: {error}")
    if "reason" in aside.fields:
        return Taken(fields=aside.fields, done=True, fault=f"{HALF}: {aside.fields['why']}")
    return Taken(fields=aside.fields, done=code == Exit.DONE, fault="" if code == Exit.DONE else f"{FAILED}.")


def left(door: Door, why: str) -> Taken:
    """Nothing is done, and it is said why."""
    door.progress.note(why, style="yellow")
    return Taken(fields={"status": "not_taken", "why": why})
