"""How a run is handed over at its end: of a job what changed, what proves it, and what a person can do with it now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from greenroom.app.talks.names import JOB
from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.ids import TeamId
from greenroom.interfaces.cli.asked import taking
from greenroom.interfaces.cli.display.questions import Gone, Person
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.loading import load
from greenroom.interfaces.cli.runs.attending import somebody
from greenroom.interfaces.cli.runs.ending import close
from greenroom.interfaces.cli.runs.running import Ending, command
from greenroom.interfaces.cli.runs.session import Door

QUESTION: Final = "[a] apply  [b NAME] on a branch  [d] show the diff  [x] discard  [Enter] later: "

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
        await _offered(door, team, name or team)
    more = {"verified": report.verified, "verdict": report.verdict, "diff": report.diff.text}
    return close(door, team, ending, name=name, spoken=spoken, more=more)


async def _offered(door: Door, team: TeamId, name: str) -> None:
    """What can be done with it: there and then if somebody is there, else how to do it."""
    done = False
    while somebody(door) and not done:
        try:
            said = Person().line(QUESTION).strip()
        except Gone:
            break
        if said.lower() in ("", "l", "later"):
            break
        done = await _done(door, team, said)
    if not done:
        verbs = "   ".join(command(door, verb, name) for verb in ("apply", "diff", "discard"))
        door.progress.note(f"Take it over, look at it, or drop it: {verbs}", style="bold")


async def _done(door: Door, team: TeamId, said: str) -> bool:
    """Do what was said; whether nothing is left to be decided."""
    order = _order(team, said)
    if order is None:
        door.progress.note("That is none of the answers.", style="yellow")
        return False
    name = type(order).__name__.lower()
    act = cast("Callable[[Door, taking.Taking], Awaitable[Exit]]", load("commands.taking", name))
    try:
        return await act(door, order) == Exit.DONE and not isinstance(order, taking.Diff)
    except GreenroomError as error:
        door.progress.note(str(error), style="yellow")
        return False


def _order(team: TeamId, said: str) -> taking.Taking | None:
    """What an answer means; None when it means nothing."""
    word, _, rest = said.partition(" ")
    match word.lower(), rest.strip():
        case "a" | "apply", "":
            return taking.Apply(name=team, commit=True, message="")
        case "d" | "diff", "":
            return taking.Diff(name=team)
        case "x" | "discard", "":
            return taking.Discard(name=team, yes=False)
        case "b" | "branch", name if name:
            return taking.Branch(name=team, branch=name)
        case _:
            return None
