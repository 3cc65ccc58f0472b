"""`greenroom diff`, `apply`, `branch`, `discard`, `undo`, `blame`: what becomes of the outcome of a job."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from greenroom.app.conversation.names import JOB
from greenroom.app.jobs.place import Outcome, drop, nowhere, of_run, outcome, workspace
from greenroom.app.jobs.report import JobReport, report_of
from greenroom.app.jobs.verdict import one_line
from greenroom.app.lookup import Found, find
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.records import Data
from greenroom.core.ports.workspace import Applied, Buried, Clashes, Committed, WorkspaceFault
from greenroom.interfaces.cli.asked import taking
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.questions import Gone, Person
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.over import named, say_hooks, say_recovered, say_unverified, unended, with_hooks
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door

SUBJECT: Final = 70
"""Characters of a commit's first line."""

BODY: Final = 4_000
"""Characters of a request that stand in a commit's message."""

NO_COMMIT: Final = "No commit was made: there is none here yet that it could follow."
BEGUN: Final = ("applying", "applied", "undoing")
NOT_COMMITTED: Final = "applied_not_committed"


async def diff(door: Door, order: taking.Diff) -> Exit:
    """Print the patch: for a person as much as can be read, for a program all of it, byte for byte."""
    team, came = await _job(door, order.name)
    if door.out.text and not door.out.live:
        door.out.write_bytes(await came.workspace.patch(came.snapshot.commit, came.tip))
        return door.out.result("shown", Exit.DONE)
    found = await came.diff()
    door.out.write(found.text)
    if found.cut:
        door.progress.note(f"Cut: there is more. All of it: {command(door, 'diff', team.team)} >FILE", style="yellow")
    return door.out.result("shown", Exit.DONE, diff=found.text, cut=found.cut)


async def apply(door: Door, order: taking.Apply) -> Exit:
    """Change the person's files, and make it a commit; what no commit can be made of is refused before."""
    found, came = await _job(door, order.name)
    await _refuse_nothing(door, found, came)
    commits = order.commit and bool(came.snapshot.head)
    if commits and not any(one.state == "applied" for one in await came.workspace.applied(found.team)):
        await _expect_commit(door, found, came)
    report = await _reported(door, found, came)
    changed = await came.workspace.hooks(came.snapshot.commit, came.tip)
    hooks = not commits or with_hooks(door, changed, order.hooks)
    async with _said_if_stopped(door, came):
        done = await came.workspace.apply(found.team, came.snapshot.commit, came.tip)
    if isinstance(done, Clashes):
        return _in_the_way(door, found, done, branch=True)
    if not done.id:
        door.out.show("Your files have this already.")
        return door.out.result("already", Exit.DONE, team=found.team, paths=[], commit="")
    if not (commits and hooks):
        say_hooks(door, changed)
    try:
        message = order.message or await _message(door, found.team)
        async with _said_if_stopped(door, came):
            made = await came.workspace.commit(done.id, message, hooks=hooks) if commits else None
    except WorkspaceFault as fault:
        return await _not_committed(door, came, done, fault)
    again = not (done.fresh if made is None else made.fresh)
    if order.commit and made is None:
        door.progress.note(NO_COMMIT)
    told = {} if made is None else await _exactness(door, came, made.commit)
    return _applied(door, report, done, made, again=again, more=told)


async def _refuse_nothing(door: Door, found: Found, came: Outcome) -> None:
    """Where there is no work there is nothing to take over; of a run that is not over there may be some later."""
    if came.tip == came.snapshot.commit:
        later = await unended(door, found.team)
        why = f"{found.team} has changed nothing{f' yet: {later}' if later else '.'}"
        raise Refused(Rejected(code="nothing_changed", why=why))


async def _reported(door: Door, found: Found, came: Outcome) -> JobReport:
    """What a person hears before work becomes theirs: that it is not over, and what of it nobody has proven."""
    if later := await unended(door, found.team):
        door.progress.note(f"{found.team} is not over: {later} What it does later is not in this.", style="yellow")
    report = await report_of(came, await door.means.steps(found.team))
    say_unverified(door, report)
    return report


@asynccontextmanager
async def _said_if_stopped(door: Door, came: Outcome) -> AsyncIterator[None]:
    """What is begun with a person's files is done to its end; who stops it meanwhile hears how they stand now. What was
    cut off before is ended first, and that is said too."""
    try:
        yield
    except asyncio.CancelledError:
        some = [one for one in await came.workspace.applied(came.run) if one.state == "applied"]
        door.progress.note(f"Stopped. {_how_it_stands(door, came.run, some)}", style="bold")
        raise
    finally:
        say_recovered(door, came.workspace)


def _how_it_stands(door: Door, run: str, some: Sequence[Applied]) -> str:
    if not some:
        return "Nothing of it is applied."
    files, back = _files(len(some[-1].paths)), f"Take it back with: {command(door, 'undo', run)}"
    if some[-1].commit:
        return f"Applied, commit {some[-1].commit[:10]}: {files}. {back}"
    return f"Applied, not committed: {files}. Commit it with: {command(door, 'apply', run)} {back}"


async def _exactness(door: Door, came: Outcome, commit: str) -> Data:
    """Whether a commit has the very files that were checked: what a person had not committed then, or has since, makes
    a difference that no check has seen."""
    other = (await came.workspace.diff(came.tip, commit, limit=0)).changes
    if not other:
        return {"exact": True}
    head, base = came.snapshot.head, came.snapshot.commit
    own = {one.path for one in (await came.workspace.diff(head, base, limit=0)).changes} if head else set[str]()
    without = [one.path for one in other if one.path in own]
    since = [one.path for one in other if one.path not in own]
    if without:
        told = "The checks ran with what you had not committed; the commit is without it"
        door.progress.note(f"{told}: {named(without)}.", style="yellow")
    if since:
        door.progress.note(f"Changed since the checks ran, so run them again: {named(since)}.", style="yellow")
    return {"exact": False}


async def _expect_commit(door: Door, found: Found, came: Outcome) -> None:
    try:
        await came.workspace.expect()
    except WorkspaceFault as fault:
        without = command(door, "apply", found.team, "--no-commit")
        hint = f"Without a commit: {without}"
        raise Refused(Rejected(code="no_commit_now", why=str(fault), hint=hint)) from fault


def _applied(door: Door, report: JobReport, done: Applied, made: Committed | None, *, again: bool, more: Data) -> Exit:
    commit = made.commit if made else ""
    what = f"{'Applied already' if again else 'Applied'}: {_files(len(done.paths))}"
    door.out.show(what + (f", commit {commit[:10]}." if commit else "."))
    door.progress.note(f"Take it back with: {command(door, 'undo', done.run)}")
    told = {"paths": list(done.paths), "commit": commit, "mixed": list[str](), "remark": ""}
    proven = {"verified": report.verified, "unproven": list(report.reasons)}
    return door.out.result("applied", Exit.DONE, team=done.run, **told, **proven, **more)


async def _not_committed(door: Door, came: Outcome, done: Applied, fault: WorkspaceFault) -> Exit:
    """The files are there, and the commit is not, or git's index does not know of it: that is said, and how to go
    back."""
    now = next((one for one in await came.workspace.applied(came.run) if one.id == done.id), done)
    if now.state == "dropped":  # and neither are they
        raise fault
    commit = now.commit
    what = f"Applied, commit {commit[:10]}, but not to its end" if commit else "Applied, not committed"
    door.out.show(f"{what}: {_files(len(done.paths))}. {fault}")
    door.progress.note(f"Take it back with: {command(door, 'undo', came.run)}")
    told = {"paths": list(done.paths), "commit": commit, "reason": fault.reason, "why": str(fault)}
    return door.out.result(NOT_COMMITTED, Exit.FAILED, team=came.run, **told)


async def branch(door: Door, order: taking.Branch) -> Exit:
    """Make the branch."""
    found, came = await _job(door, order.name)
    await _refuse_nothing(door, found, came)
    message = await _message(door, found.team)
    await _reported(door, found, came)
    made = await came.workspace.branch(order.branch, came.snapshot.commit, came.tip, message)
    if isinstance(made, Clashes):
        return _in_the_way(door, found, made, branch=False)
    door.out.show(f"{made.name} is at {made.commit[:10]}.")
    told = await _exactness(door, came, made.commit)
    return door.out.result("branched", Exit.DONE, team=found.team, branch=made.name, commit=made.commit, **told)


async def undo(door: Door, order: taking.Undo) -> Exit:
    """Make the files what they were."""
    found, came = await _job(door, order.name)
    every = await came.workspace.applied(found.team)
    some = [one for one in every if one.state in BEGUN] or [one for one in every if one.state == "undone"]
    if not some:  # what is undone may be on this branch still
        raise _not_applied(found, every)
    return await _undone(door, found, came, some[-1], order)


async def _undone(door: Door, found: Found, came: Outcome, applied: Applied, order: taking.Undo) -> Exit:
    async with _said_if_stopped(door, came):
        done = await came.workspace.undo(applied.id, revert=order.revert)
    if isinstance(done, Clashes):
        return _in_the_way(door, found, done, branch=False)
    if isinstance(done, Buried):
        again = command(door, "undo", found.team, "--revert")
        raise Refused(Rejected(code="buried", why=done.why, hint=f"A commit on top takes it back: {again}"))
    if not done.paths:  # somebody else was first, or half of it was there and was taken back by hand
        raise _not_applied(found, await came.workspace.applied(found.team))
    door.out.show(f"Undone: {named(done.paths)}.")
    return door.out.result("undone", Exit.DONE, team=found.team, paths=list(done.paths), revert=done.revert, remark="")


def _not_applied(found: Found, every: Sequence[Applied]) -> Refused:
    undone = ": it is undone already" if every and every[-1].state == "undone" else ""
    return Refused(Rejected(code="not_applied", why=f"Nothing of {found.team} is applied{undone}."))


async def blame(door: Door, order: taking.Blame) -> Exit:
    """Name the step, its reason and its evidence."""
    path, _, number = order.place.rpartition(":")
    if not path or not number.isdecimal() or not int(number):
        why = f"{order.place!r} names no line."
        raise Refused(Rejected(code="no_line", why=why, hint="Say FILE:LINE, as cli.py:40."))
    theirs = await workspace(door.means.root)
    found = await theirs.blame(_inside(path, Path(theirs.root)), int(number))
    if found is None:
        why = f"Line {number} of {path!r} is in no commit yet, and no job wrote it: somebody has changed it here."
        raise Refused(Rejected(code="in_no_commit", why=why, hint="Once you commit it, that commit is named."))
    where = f"commit {found.commit[:10]}" if found.commit else "in no commit yet"
    lines = [harmless(found.text.rstrip()), where]
    if found.step is not None:
        lines += [f"run {found.step.run}, step {found.step.step} of {found.step.agent}: {harmless(found.step.summary)}"]
        lines += await _reasons(door, TeamId(found.step.run), StepId(found.step.step), unkept=not found.commit)
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
    where = Path(os.path.normpath(Path(path).absolute()))
    if not where.is_relative_to(root):
        raise Refused(Rejected(code="outside", why=f"{path!r} is not in {str(root)!r}.", hint="Go to its repository."))
    return where.relative_to(root).as_posix()


async def _reasons(door: Door, team: TeamId, name: StepId, *, unkept: bool) -> list[str]:
    """What the agent said when it made the call, and what proves the work; and what to do where it is in no commit."""
    try:
        await find(door.runtime, team)
    except Refused:
        return ["Its log is not here."]
    steps = await door.means.steps(team)
    mine = next((one for one in steps if one.step_id == name), None)
    cause = next((one for one in steps if mine is not None and one.step_id == mine.cause), None)
    said = harmless(str(((cause.result if cause else None) or {}).get("text", "")).strip())
    world = await door.runtime.world(team)
    came = await outcome(world.team, door.means.steps)
    report = await report_of(came, steps)
    proofs = [one for one in report.lines if one.startswith(("✓", "✗", "NOT"))]
    commit = f"Commit it with: {command(door, 'apply', team)}   or take it back with: {command(door, 'undo', team)}"
    return [*([f"why: {said}"] if said else []), *proofs, *([commit] if unkept and came.snapshot.head else [])]


async def discard(door: Door, order: taking.Discard) -> Exit:
    """Drop the copy."""
    found, came = await _job(door, order.name)
    holder = await door.runtime.log.holder(found.team)
    if holder is not None:
        stop = command(door, "pause", found.team)
        raise Refused(
            Rejected(code="works", why=f"{found.team} works, in {holder.owner}.", hint=f"Stop it first: {stop}")
        )
    applied = any(one.state == "applied" for one in await came.workspace.applied(found.team))
    changes = () if applied else (await came.diff()).changes
    lost = [text for one in await of_run(found.team) for text in nowhere(one)]
    if (changes or lost) and not order.yes and not _sure(found, len(changes), lost):
        raise Refused(Rejected(code="not_sure", why="Nothing was dropped.", hint="--yes drops it without asking."))
    await drop(found.team)
    door.out.show(f"Dropped. The commits of {found.team} stay in the repository, below refs/greenroom.")
    if lost:
        door.out.show(f"Gone for good, for no commit can have it: {'; '.join(lost)}.")
    return door.out.result("discarded", Exit.DONE, team=found.team, lost=lost)


def _sure(found: Found, count: int, lost: Sequence[str]) -> bool:
    files = [f"{found.team} has changed {_files(count)}, and that would go."] if count else []
    more = [f"This would go for good, for no commit can have it: {'; '.join(lost)}."] if lost else []
    try:
        said = Person().answer(" ".join((*files, *more, "Drop it? y/n")), "n")
    except Gone:
        return False
    return said.lower() in ("y", "yes")


def _in_the_way(door: Door, found: Found, clashes: Clashes, *, branch: bool) -> Exit:
    for one in clashes.clashes:
        door.progress.note(f"  {one_line(one.path)}: {one.why}")
    door.out.show("Nothing was changed: these files are in the way.")
    if branch:
        door.progress.note(f"Put it on a branch instead: {command(door, 'branch', found.team, 'NAME')}")
    told = [{"path": one.path, "why": one.why} for one in clashes.clashes]
    return door.out.result("clash", Exit.FAILED, team=found.team, clashes=told)


def _files(count: int) -> str:
    return f"{count} file{'s' if count != 1 else ''}"


async def _job(door: Door, name: str) -> tuple[Found, Outcome]:
    found = await find(door.runtime, name)
    world = await door.runtime.world(found.team)
    if world.team.kit != JOB:
        raise Refused(Rejected(code="no_job", why=f"{found.team} is no job: it changed files where they are."))
    return found, await outcome(world.team, door.means.steps)


async def _message(door: Door, team: TeamId) -> str:
    """What was asked for, and what came of it."""
    tasks = await door.runtime.ended_tasks(team)
    asked = tasks[0].intention if tasks else "Work of an agent"
    first = " ".join(asked.split())
    subject = first if len(first) <= SUBJECT else f"{first[: SUBJECT - 1]}…"
    rest = [_bounded(asked, team)] if subject != asked else []
    return "\n\n".join((subject, *rest))


def _bounded(asked: str, team: TeamId) -> str:
    """A request as it stands in a commit's message, which everybody has to read who reads the history."""
    if len(asked) <= BODY:
        return asked
    where = f"greenroom show {team} --output-format json"
    return f"{asked[:BODY].rstrip()}…\n\n(Cut: these are {BODY:,} of {len(asked):,} characters. All of it: {where})"
