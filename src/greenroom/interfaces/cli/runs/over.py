"""What a person has to know before work becomes a commit of theirs: what nobody has proven, and what their hooks would
run of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.app.jobs.report import JobReport
from greenroom.app.jobs.verdict import one_line
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.workspace import Workspace
from greenroom.core.state.approval import Approval
from greenroom.core.state.world import World
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.words import shorten
from greenroom.interfaces.cli.runs.deciding import asked_by, is_plan, to_type, waiting
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door

SHOWN: Final = 5
"""Files that are named, and doubts."""

ASKED: Final = 200
"""Characters of a question, or of a reason, that are told."""

RECOVERED: Final = {
    "applied": "is applied now, all of it",
    "undone": "is undone now, all of it",
    "dropped": "did not fit any more, so nothing of it is applied",
}


def say_unverified(door: Door, report: JobReport) -> None:
    """In one line."""
    if report.verified:
        return
    some = [reason.rstrip(".") for reason in report.reasons]
    more = f"; and {len(some) - SHOWN} more" if len(some) > SHOWN else ""
    door.progress.note(f"{report.verdict.state}: {harmless('; '.join(some[:SHOWN]))}{more}.", style="yellow")


async def unended(door: Door, team: TeamId) -> str:
    """What a run that is not over waits for, and how it goes on; empty for one that is over."""
    world = await door.runtime.world(team)
    if not world.tasks:
        return ""
    if asked := waiting(world):
        return f"it waits for your answer to “{_asked(world, asked[0])}”. {_answer(door, team, world, asked[0])}."
    holder = await door.runtime.log.holder(team)
    if holder is not None:
        return f"it works, in {holder.owner}."
    found = await door.runtime.stands(team, next(iter(world.tasks)))
    held = f"it is paused ({shorten(found.why, ASKED)})" if found.why else "nobody works on it now"
    return f"{held}. Go on with: {command(door, 'resume', team)}."


def _asked(world: World, one: Approval) -> str:
    return shorten(harmless(one.question if is_plan(world, one) else asked_by(one)), ASKED)


def _answer(door: Door, team: TeamId, world: World, one: Approval) -> str:
    said, other = to_type(world, one)
    return ", ".join(part for part in (f"Answer with: {command(door, 'answer', team, said)}", other) if part)


def say_recovered(door: Door, theirs: Workspace) -> None:
    """What a kill had left in the middle, and how the files stand now: they have changed without an order for it."""
    for one in theirs.recovered():
        ends = RECOVERED.get(one.state, f"is {one.state}")
        door.progress.note(f"{one.run} was cut off in your files: it {ends} ({named(one.paths)}).", style="yellow")


def with_hooks(door: Door, changed: Sequence[str], said: bool | None) -> bool:
    """Whether hooks run at the commit. A change that sets up hooks is committed without any, unless a person says
    otherwise: they run as that person, in no sandbox."""
    if said is not None or not changed:
        return said is not False
    door.progress.note(
        f"The change sets up hooks ({named(changed)}), so it is committed without running any. --hooks runs them.",
        style="yellow",
    )
    return False


def say_hooks(door: Door, changed: Sequence[str]) -> None:
    """What is in their files now runs when they commit something themselves."""
    if changed:
        door.progress.note(f"From your next commit on your hooks run what the work made of {named(changed)}.")


def named(paths: Sequence[str]) -> str:
    """Some of them, on one line."""
    return f"{', '.join(map(one_line, paths[:SHOWN]))}{' …' if len(paths) > SHOWN else ''}"
