"""What a person has to know before work becomes a commit of theirs: what nobody has proven, and what their hooks would
run of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.app.jobs.report import JobReport, one_line
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.ports.workspace import Workspace
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.questions import Gone, Person
from greenroom.interfaces.cli.runs.attending import somebody
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door

SHOWN: Final = 5
"""Files that are named, and doubts."""

NO_REASON: Final = "no check has proven it"
RECOVERED: Final = {
    "applied": "is applied now, all of it",
    "undone": "is undone now, all of it",
    "dropped": "did not fit any more, so nothing of it is applied",
}
CHOICE: Final = "[y] run the hooks  [n] commit without any hook  [Enter] change nothing"


def say_unproven(door: Door, report: JobReport) -> None:
    """In one line."""
    if report.verified:
        return
    some = [one.rstrip(".") for one in report.unproven] or [NO_REASON]
    more = f"; and {len(some) - SHOWN} more" if len(some) > SHOWN else ""
    door.progress.note(f"NOT verified: {harmless('; '.join(some[:SHOWN]))}{more}.", style="yellow")


def say_recovered(door: Door, theirs: Workspace) -> None:
    """What a kill had left in the middle, and how the files stand now: they have changed without an order for it."""
    for one in theirs.recovered():
        ends = RECOVERED.get(one.state, f"is {one.state}")
        door.progress.note(f"{one.run} was cut off in your files: it {ends} ({named(one.paths)}).", style="yellow")


def with_hooks(door: Door, team: str, changed: Sequence[str], said: bool | None) -> bool:
    """Whether hooks run at the commit. Where the work changes what they run, a person says so; without one that is
    refused, since they run as that person and behind no walls."""
    if said is not None or not changed:
        return said is not False
    what = f"The work changes what your hooks run: {named(changed)}."
    if somebody(door):
        door.progress.note(f"{what} They run as you, behind no walls.", style="yellow")
        try:
            answer = Person().answer(CHOICE, "nothing").lower()
        except Gone:
            answer = ""
        if answer in ("y", "yes", "n", "no"):
            return answer in ("y", "yes")
        raise Refused(Rejected(code="not_sure", why="Nothing was changed."))
    look, apply = command(door, "diff", team), command(door, "apply", team)
    raise Refused(
        Rejected(
            code="hooks_changed",
            why=f"{what} They would run as you, behind no walls, so nothing was changed.",
            hint=f"Look at it ({look}), then say `{apply} --hooks` to run them, or --no-hooks to commit without any.",
        )
    )


def say_hooks(door: Door, changed: Sequence[str]) -> None:
    """What is in their files now runs when they commit something themselves."""
    if changed:
        door.progress.note(f"From your next commit on your hooks run what the work made of {named(changed)}.")


def named(paths: Sequence[str]) -> str:
    """Some of them, on one line."""
    return f"{', '.join(map(one_line, paths[:SHOWN]))}{' …' if len(paths) > SHOWN else ''}"
