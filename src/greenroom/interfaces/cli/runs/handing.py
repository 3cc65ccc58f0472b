"""How a run is handed over at its end: of a job what changed, what proves it, and what a person can do with it now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from greenroom.app.talks.names import JOB
from greenroom.core.base.ids import TeamId
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.loading import load
from greenroom.interfaces.cli.runs.ending import close
from greenroom.interfaces.cli.runs.running import Ending, command
from greenroom.interfaces.cli.runs.session import Door

if TYPE_CHECKING:
    from greenroom.app.jobs.report import JobReport


async def handed_over(door: Door, team: TeamId, ending: Ending, *, name: str | None = None, spoken: str = "") -> Exit:
    """Close the run; of a job that is over, first say what came of it."""
    world = ending.teller.world
    if world.team.kit != JOB or any(
        one.word in ("waiting", "paused", "limit", "provider") for _, one in ending.standings
    ):
        return close(door, team, ending, name=name, spoken=spoken)
    make = cast("Callable[[Door, TeamId, Path], Awaitable[JobReport]]", load("runs.jobs", "reported"))
    report = await make(door, team, Path(world.team.workspace))
    door.progress.note("")
    for line in report.lines:
        door.progress.note(line, style="yellow" if line.startswith(("NOT", "Changed by", "Said,")) else "")
    if report.diff.changes:
        verbs = "   ".join(command(door, verb, name or team) for verb in ("apply", "diff", "discard"))
        door.progress.note(f"Take it over, look at it, or drop it: {verbs}", style="bold")
    more = {"verified": report.verified, "verdict": report.verdict, "diff": report.diff.text}
    return close(door, team, ending, name=name, spoken=spoken, more=more)
