"""How a run is handed over at its end: of a job what changed, what proves it, and what a person can do with it now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, cast

from greenroom.app.conversation.names import JOB
from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.codec import plain
from greenroom.interfaces.cli.asked import taking
from greenroom.interfaces.cli.display.questions import Gone, Person
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.loading import load
from greenroom.interfaces.cli.runs.attending import somebody
from greenroom.interfaces.cli.runs.ending import close, summary
from greenroom.interfaces.cli.runs.running import Ending, command
from greenroom.interfaces.cli.runs.session import Door
from greenroom.interfaces.cli.runs.taking_over import UNFINISHED, left, taken

ANSWERED: Final = "answered"
"""What programs read in the place of *verified* where nothing was changed, so that no check had anything to judge."""

HEADS: Final = {
    "verified": ("✓ Verified", "bold green"),
    "failed": ("✗ Failed", "bold red"),
    "unverified": ("? Unverified", "bold yellow"),
}
STYLES: Final = {"!": "yellow", "failed": "red", "unverified": "yellow"}
QUESTION: Final = "[a] apply  [b NAME] on a branch  [d] show the diff  [x] discard  [Enter] later: "

if TYPE_CHECKING:
    from greenroom.app.jobs.report import JobReport


async def handed_over(
    door: Door,
    team: TeamId,
    ending: Ending,
    *,
    name: str | None = None,
    spoken: str = "",
    take: taking.Apply | taking.Branch | None = None,
) -> Exit:
    """Close the run; of a job that is over, first say what came of it, and take it over if that was ordered."""
    world = ending.teller.world
    if world.team.kit != JOB:
        return close(door, team, ending, name=name, spoken=spoken)
    if any(one.word in ("waiting", "paused", "limit", "provider") for _, one in ending.standings):
        await _so_far(door, team, ending, name or team)
        told = {"taken": left(door, UNFINISHED).fields} if take is not None else {}
        return close(door, team, ending, name=name, spoken=spoken, more={"verified": False, "answered": False, **told})
    make = cast("Callable[[Door, TeamId], Awaitable[JobReport]]", load("runs.jobs", "reported"))
    report = await make(door, team)
    _head(door, ending, report)
    for line in report.lines:
        door.progress.note(line, style=STYLES.get(line.partition(":")[0].partition(" ")[0], ""))
    over = await taken(door, team, take, report) if take is not None else None
    if report.diff.changes and (over is None or not over.done):
        await _offered(door, team, name or team)
    more = {**programs(report), **({"taken": over.fields} if over is not None else {})}
    fault = over.fault if over is not None else ""
    ended = _judged(ending, report, fault)
    return close(door, team, ended, name=name, spoken=spoken, more=more, headed=True)


async def _so_far(door: Door, team: TeamId, ending: Ending, name: str) -> None:
    """What is there when it may not go on: that is not lost, and not proven."""
    if not any(one.word == "limit" for _, one in ending.standings):
        return
    make = cast("Callable[[Door, TeamId], Awaitable[JobReport]]", load("runs.jobs", "reported"))
    report = await make(door, team)
    door.progress.note("\nSo far, and not verified:", style="yellow")
    for line in report.lines:
        door.progress.note(line)
    if report.diff.changes:
        door.progress.note(f"Look at it with: {command(door, 'diff', name)}")


def not_begun(door: Door, team: TeamId) -> Exit:
    """Somebody went away before the first step: it waits for them."""
    door.progress.note(f"Nothing has begun. Go on with: {command(door, 'resume', team)}", style="bold")
    return door.out.result("paused", Exit.WAITING, team=team)


def _head(door: Door, ending: Ending, report: JobReport) -> None:
    """How it ended and what it took, before anything is decided."""
    head, style = HEADS["failed" if ending.code == Exit.FAILED else report.verdict.state]
    if report.verified and not report.diff.changes:
        head = "✓ Answered"
    door.progress.note("")
    door.progress.note(f"{head}: {summary(ending)}", style=style)


def programs(report: JobReport) -> Data:
    """The same for programs; `report` has the lines that people read. An answer is no change that checks have seen."""
    answered = report.verified and not report.diff.changes
    return {
        "verified": report.verified and not answered,
        ANSWERED: answered,
        "verdict": {**report.kept, **({"state": ANSWERED} if answered else {})},
        "base": report.base,
        "tip": report.tip,
        "changes": [plain(one) for one in report.diff.changes],
        "diff": report.diff.text,
        "diff_cut": report.diff.cut,
        "report": list(report.lines),
    }


def _judged(ending: Ending, report: JobReport, fault: str) -> Ending:
    """Good only if it is verified, and was applied if that was ordered. A run that failed by itself says why."""
    reasons = report.verdict.reasons
    code = reasons[0].code if report.verdict.state == "unverified" and reasons else ""
    by_itself = code and any(standing.word == "failed" for _, standing in ending.standings)
    return evolve(ending, fault=fault, unverified=code, why="" if by_itself else "; ".join(report.reasons))


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
        door.progress.note(f"Apply, view or discard it: {verbs}", style="bold")


async def _done(door: Door, team: TeamId, said: str) -> bool:
    """Do what was said; whether nothing is left to be decided."""
    order = _order(team, said)
    if order is None:
        door.progress.note("Unknown choice. Type a, b NAME, d, x or Enter.", style="yellow")
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
