"""`greenroom diff`, `apply`, `branch`, `discard`, `undo`, `blame`: what becomes of the outcome of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from greenroom.app.jobs.copies import drop
from greenroom.app.jobs.place import Place, opened, workspace
from greenroom.app.jobs.report import report_of
from greenroom.app.lookup import Found, find
from greenroom.app.talks.names import JOB
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.ports.workspace import Applied, Buried, Clashes
from greenroom.interfaces.cli.asked import taking
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.questions import Gone, Person
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door

SUBJECT: Final = 70
"""Characters of a commit's first line."""


async def diff(door: Door, order: taking.Diff) -> Exit:
    """Print the patch."""
    _, place = await _job(door, order.name)
    found = await place.diff()
    door.out.write(harmless(found.text))
    return door.out.result("shown", Exit.DONE, diff=found.text, cut=found.cut)


async def apply(door: Door, order: taking.Apply) -> Exit:
    """Change the person's files, and make it a commit."""
    found, place = await _job(door, order.name)
    tip = await place.worktree.tip()
    if tip == place.snapshot.commit:
        raise Refused(Rejected(code="nothing_changed", why=f"{found.team} has changed nothing."))
    done = await place.workspace.apply(found.team, place.snapshot.commit, tip)
    if isinstance(done, Clashes):
        return _in_the_way(door, found, done)
    made = ""
    if order.commit and place.snapshot.head:
        message = order.message or await _message(door, found.team)
        made = (await place.workspace.commit(done.id, message)).commit
    what = f"{len(done.paths)} file{'s' if len(done.paths) != 1 else ''}"
    door.out.show(f"Applied: {what}" + (f", commit {made[:10]}." if made else "."))
    door.progress.note(f"Take it back with: {command(door, 'undo', found.team)}")
    return door.out.result("applied", Exit.DONE, team=found.team, paths=list(done.paths), commit=made)


async def branch(door: Door, order: taking.Branch) -> Exit:
    """Make the branch."""
    found, place = await _job(door, order.name)
    tip, message = await place.worktree.tip(), await _message(door, found.team)
    made = await place.workspace.branch(order.branch, place.snapshot.commit, tip, message)
    whole = " What you had not committed is in it too." if made.whole else ""
    door.out.show(f"{made.name} is at {made.commit[:10]}.{whole}")
    return door.out.result("branched", Exit.DONE, team=found.team, branch=made.name, commit=made.commit)


async def undo(door: Door, order: taking.Undo) -> Exit:
    """Make the files what they were."""
    found, place = await _job(door, order.name)
    some = [one for one in await place.workspace.applied(found.team) if one.state in ("applied", "undoing")]
    if not some:
        raise Refused(Rejected(code="not_applied", why=f"Nothing of {found.team} is applied."))
    return await _undone(door, found, place, some[-1], order)


async def _undone(door: Door, found: Found, place: Place, applied: Applied, order: taking.Undo) -> Exit:
    done = await place.workspace.undo(applied.id, revert=order.revert)
    if isinstance(done, Clashes):
        return _in_the_way(door, found, done)
    if isinstance(done, Buried):
        again = command(door, "undo", found.team, "--revert")
        raise Refused(Rejected(code="buried", why=done.why, hint=f"A commit on top takes it back: {again}"))
    door.out.show(f"Undone: {', '.join(done.paths[:5])}{' …' if len(done.paths) > 5 else ''}.")
    return door.out.result("undone", Exit.DONE, team=found.team, paths=list(done.paths), revert=done.revert)


async def blame(door: Door, order: taking.Blame) -> Exit:
    """Name the step, its reason and its evidence."""
    path, _, number = order.place.rpartition(":")
    if not path or not number.isdigit() or not int(number):
        why = f"{order.place!r} names no line."
        raise Refused(Rejected(code="no_line", why=why, hint="Say FILE:LINE, as cli.py:40."))
    theirs = await workspace(door.means.surroundings.root)
    found = await theirs.blame(_inside(path, Path(theirs.root)), int(number))
    if found is None:
        raise Refused(Rejected(code="no_line", why=f"{path!r} has no line {number} that anybody has committed."))
    lines = [f"{harmless(found.text.rstrip())}", f"commit {found.commit[:10]}"]
    if found.step is not None:
        lines += [f"run {found.step.run}, step {found.step.step} of {found.step.agent}: {harmless(found.step.summary)}"]
        lines += await _reasons(door, TeamId(found.step.run), StepId(found.step.step))
    else:
        lines.append("No step of a job wrote it.")
    door.out.show("\n".join(lines))
    return door.out.result(
        "blamed",
        Exit.DONE,
        commit=found.commit,
        run=found.step.run if found.step else None,
        step=found.step.step if found.step else None,
    )


def _inside(path: str, root: Path) -> str:
    """A path that was typed here, as the repository knows it."""
    where = Path(path).absolute()
    return (where.relative_to(root) if where.is_relative_to(root) else Path(path)).as_posix()


async def _reasons(door: Door, team: TeamId, name: StepId) -> list[str]:
    """What the agent said when it made the call, and what proves the work."""
    try:
        await find(door.runtime, team)
    except Refused:
        return ["Its log is not here."]
    steps = await door.means.steps(team)
    mine = next((one for one in steps if one.step_id == name), None)
    cause = next((one for one in steps if mine is not None and one.step_id == mine.cause), None)
    said = harmless(str(((cause.result if cause else None) or {}).get("text", "")).strip())
    world = await door.runtime.world(team)
    report = await report_of(await opened(Path(world.team.workspace), team), steps)
    proofs = [one for one in report.lines if one.startswith(("✓", "✗", "NOT"))]
    return [*([f"why: {said}"] if said else []), *proofs]


async def discard(door: Door, order: taking.Discard) -> Exit:
    """Drop the copy."""
    found, place = await _job(door, order.name)
    changes = await place.changes()
    if changes and not order.yes and not _sure(found, len(changes)):
        raise Refused(Rejected(code="not_sure", why="Nothing was dropped.", hint="--yes drops it without asking."))
    await drop(found.team)
    door.out.show(f"Dropped. The commits of {found.team} stay in the repository, below refs/greenroom.")
    return door.out.result("discarded", Exit.DONE, team=found.team)


def _sure(found: Found, count: int) -> bool:
    try:
        said = Person().answer(f"{found.team} has changed {count} files that would go. Drop them? y/n", "n")
    except Gone:
        return False
    return said.lower() in ("y", "yes")


def _in_the_way(door: Door, found: Found, clashes: Clashes) -> Exit:
    for one in clashes.clashes:
        door.progress.note(f"  {one.path}: {one.why}")
    door.out.show("Nothing was changed: these files are in the way.")
    door.progress.note(f"Put it on a branch instead: {command(door, 'branch', found.team, 'NAME')}")
    told = [{"path": one.path, "why": one.why} for one in clashes.clashes]
    return door.out.result("clash", Exit.FAILED, team=found.team, clashes=told)


async def _job(door: Door, name: str) -> tuple[Found, Place]:
    found = await find(door.runtime, name)
    world = await door.runtime.world(found.team)
    if world.team.kit != JOB:
        raise Refused(Rejected(code="no_job", why=f"{found.team} is no job: it changed files where they are."))
    return found, await opened(Path(world.team.workspace), found.team)


async def _message(door: Door, team: TeamId) -> str:
    """What was asked for, and what came of it."""
    tasks = await door.runtime.ended_tasks(team)
    asked = tasks[0].intention if tasks else "Work of an agent"
    first = " ".join(asked.split())
    subject = first if len(first) <= SUBJECT else f"{first[: SUBJECT - 1]}…"
    rest = [asked] if subject != asked else []
    return "\n\n".join((subject, *rest))
