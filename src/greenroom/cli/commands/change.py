"""`greenroom diff`, `apply`, `branch`, `discard`, `undo`, `blame`: what becomes of the change that a job made."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from greenroom.app.conversation.names import JOB
from greenroom.app.lookup import LAST, Found, find
from greenroom.app.messages.findings import one_line
from greenroom.app.runs.report import JobReport, report_of
from greenroom.app.runs.workspaces import Outcome, drop, nowhere, of_run, outcome, workspace
from greenroom.cli.context import Invocation, command, refused
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.approvals import is_plan, pending_approvals, quote_question, words_to_type
from greenroom.cli.options import DoNotAsk, Id
from greenroom.cli.render.output import harmless
from greenroom.cli.render.questions import confirm
from greenroom.cli.render.words import shorten
from greenroom.core.base.errors import Refused
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.records import Data
from greenroom.core.ports.workspace import Applied, Buried, Clashes, Committed, Workspace, WorkspaceFault

SUBJECT: Final = 70  # characters of a commit's first line
BODY: Final = 4_000  # characters of a request that stand in a commit's message
SHOWN: Final = 5  # files that are named, and reasons
ASKED: Final = 200  # characters of a question, or of a reason, that are told
NO_COMMIT: Final = "No commit was made: there is none here yet that it could follow."
BEGUN: Final = ("applying", "applied", "undoing")
RECOVERED: Final = {
    "applied": "is applied now, all of it",
    "undone": "is undone now, all of it",
    "dropped": "did not fit any more, so nothing of it is applied",
}


async def diff(cli: Invocation, name: Id) -> Exit:
    """Print what a job changed, as a patch."""
    found, came = await _job(cli, name)
    if cli.out.text and not cli.out.live:  # for a program all of it, byte for byte
        cli.out.write_bytes(await came.workspace.patch(came.snapshot.commit, came.tip))
        return cli.out.result("shown", Exit.DONE)
    patch = await came.diff()
    cli.out.write(patch.text)
    if patch.cut:
        cli.progress.note(f"Cut: there is more. All of it: {command(cli, 'diff', found.team)} >FILE", style="yellow")
    return cli.out.result("shown", Exit.DONE, diff=patch.text, cut=patch.cut)


async def _job(cli: Invocation, name: str) -> tuple[Found, Outcome]:
    """The run that is meant; `last` is the newest of those that worked on a copy of the folder in which it is typed."""
    found = await (_last_here(cli) if name.strip() == LAST else find(cli.runtime, name))
    world = await cli.runtime.world(found.team)
    if world.team.kit != JOB:
        raise refused("no_job", f"{found.team} has no change: it did not work in a copy of your files.")
    return found, await outcome(world.team, cli.means.steps)


async def _last_here(cli: Invocation) -> Found:
    newest = await find(cli.runtime, LAST)
    here = Path.cwd().resolve()
    for info in reversed(await cli.runtime.log.streams()):
        team = (await cli.runtime.world(TeamId(info.stream))).team if info.head.version else None
        if team is not None and team.kit == JOB and here.is_relative_to(team.workspace):
            return Found(team=team.team_id)
    why = f"No run has worked on a copy of {str(here)!r}."
    raise refused("no_job_here", why, f"Go to the folder of the run, or name it: the newest is {newest}.")


# ------------------------------------------------------------------------------------------------------------- apply


async def apply(
    cli: Invocation,
    name: Id,
    *,
    no_commit: Annotated[bool, typer.Option("--no-commit", help="Change the files only.")] = False,
    message: Annotated[str, typer.Option("--message", "-m", help="The message of the commit.")] = "",
    hooks: Annotated[bool, typer.Option("--hooks", help="Run your hooks also if the job changes them.")] = False,
    no_hooks: Annotated[bool, typer.Option("--no-hooks", help="Run none of your hooks.")] = False,
) -> Exit:
    """Bring what a job changed to your files, as one commit in your name. Your hooks run, unless the job changes what
    they run: then you are asked."""
    if hooks and no_hooks:
        raise typer.BadParameter("Either --hooks or --no-hooks: they run, or they do not.")
    found, came = await _job(cli, name)
    await _refuse_nothing(cli, found, came)
    commits = not no_commit and bool(came.snapshot.head)
    if commits and not any(applied.state == "applied" for applied in await came.workspace.applied(found.team)):
        try:
            await came.workspace.expect()
        except WorkspaceFault as fault:
            without = command(cli, "apply", found.team, "--no-commit")
            raise refused("no_commit_now", str(fault), f"Without a commit: {without}") from fault
    report = await _say_state(cli, found, came)
    changed = await came.workspace.hooks(came.snapshot.commit, came.tip)
    run_hooks = not no_hooks and (hooks or not commits or not changed)
    if changed and commits and not hooks and not no_hooks:  # hooks run as the person, in no sandbox
        told = f"The change sets up hooks ({_named(changed)}), so it is committed without running any."
        cli.progress.note(f"{told} --hooks runs them.", style="yellow")
    async with _told_if_stopped(cli, came):
        done = await came.workspace.apply(found.team, came.snapshot.commit, came.tip)
    if isinstance(done, Clashes):
        return _in_the_way(cli, found, done, branch=True)
    if not done.id:
        cli.out.show("Your files have this already.")
        return cli.out.result("already", Exit.DONE, team=found.team, paths=[], commit="")
    if changed and not (commits and run_hooks):
        cli.progress.note(f"From your next commit on your hooks run what the work made of {_named(changed)}.")
    try:
        text = message.strip() or await _message(cli, found.team)
        async with _told_if_stopped(cli, came):
            made = await came.workspace.commit(done.id, text, hooks=run_hooks) if commits else None
    except WorkspaceFault as fault:
        return await _not_committed(cli, came, done, fault)
    if not no_commit and made is None:
        cli.progress.note(NO_COMMIT)
    return await _applied(cli, came, report, done, made)


async def _refuse_nothing(cli: Invocation, found: Found, came: Outcome) -> None:
    """Where there is no work there is nothing to take over; of a run that is not over there may be some later."""
    if came.tip == came.snapshot.commit:
        later = await _unended(cli, found.team)
        raise refused("nothing_changed", f"{found.team} has changed nothing{f' yet: {later}' if later else '.'}")


async def _say_state(cli: Invocation, found: Found, came: Outcome) -> JobReport:
    """What a person hears before work becomes theirs: that it is not over, and what of it is not verified."""
    if later := await _unended(cli, found.team):
        cli.progress.note(f"{found.team} is not over: {later} What it does later is not in this.", style="yellow")
    report = await report_of(came, await cli.means.steps(found.team))
    if not report.verified:
        some = [reason.rstrip(".") for reason in report.reasons]
        more = f"; and {len(some) - SHOWN} more" if len(some) > SHOWN else ""
        cli.progress.note(f"{report.verdict.state}: {harmless('; '.join(some[:SHOWN]))}{more}.", style="yellow")
    return report


async def _unended(cli: Invocation, team: TeamId) -> str:
    """What a run that is not over waits for, and how it goes on; empty for one that is over."""
    world = await cli.runtime.world(team)
    if not world.tasks:
        return ""
    if asked := pending_approvals(world):
        approval, (said, other) = asked[0], words_to_type(world, asked[0])
        question = shorten(harmless(approval.question if is_plan(world, approval) else quote_question(approval)), ASKED)
        how = ", ".join(filter(None, (f"Answer with: {command(cli, 'answer', team, said)}", other)))
        return f"it waits for your answer to “{question}”. {how}."
    holder = await cli.runtime.log.holder(team)
    if holder is not None:
        return f"it works, in {holder.owner}."
    found = await cli.runtime.stands(team, next(iter(world.tasks)))
    held = f"it is paused ({shorten(found.why, ASKED)})" if found.why else "nobody works on it now"
    return f"{held}. Go on with: {command(cli, 'resume', team)}."


@asynccontextmanager
async def _told_if_stopped(cli: Invocation, came: Outcome) -> AsyncIterator[None]:
    """What is begun with a person's files is done to its end; who stops it meanwhile hears how they stand now. What was
    cut off before is ended first, and that is said too."""
    try:
        yield
    except asyncio.CancelledError:
        applied = [each for each in await came.workspace.applied(came.run) if each.state == "applied"]
        cli.progress.note(f"Stopped. {_how_it_stands(cli, came.run, applied)}", style="bold")
        raise
    finally:
        say_recovered(cli, came.workspace)


def _how_it_stands(cli: Invocation, run: str, applied: Sequence[Applied]) -> str:
    if not applied:
        return "Nothing of it is applied."
    files, back = _files(len(applied[-1].paths)), f"Take it back with: {command(cli, 'undo', run)}"
    if applied[-1].commit:
        return f"Applied, commit {applied[-1].commit[:10]}: {files}. {back}"
    return f"Applied, not committed: {files}. Commit it with: {command(cli, 'apply', run)} {back}"


def say_recovered(cli: Invocation, theirs: Workspace) -> None:
    """What a kill had left in the middle, and how the files stand now: they have changed without an order for it."""
    for each in theirs.recovered():
        ends = RECOVERED.get(each.state, f"is {each.state}")
        cli.progress.note(f"{each.run} was cut off in your files: it {ends} ({_named(each.paths)}).", style="yellow")


async def _applied(cli: Invocation, came: Outcome, report: JobReport, done: Applied, made: Committed | None) -> Exit:
    again = not (done.fresh if made is None else made.fresh)
    exact = {} if made is None else await _exactness(cli, came, made.commit)
    commit = made.commit if made else ""
    what = f"{'Applied already' if again else 'Applied'}: {_files(len(done.paths))}"
    cli.out.show(what + (f", commit {commit[:10]}." if commit else "."))
    cli.progress.note(f"Take it back with: {command(cli, 'undo', done.run)}")
    told = {"paths": list(done.paths), "commit": commit, "mixed": list[str](), "remark": ""}
    proven = {"verified": report.verified, "unproven": list(report.reasons)}
    return cli.out.result("applied", Exit.DONE, team=done.run, **told, **proven, **exact)


async def _exactness(cli: Invocation, came: Outcome, commit: str) -> Data:
    """Whether a commit has the very files that were checked: what a person had not committed then, or has since, makes
    a difference that no check has seen."""
    other = (await came.workspace.diff(came.tip, commit, limit=0)).changes
    if not other:
        return {"exact": True}
    head, base = came.snapshot.head, came.snapshot.commit
    own = {each.path for each in (await came.workspace.diff(head, base, limit=0)).changes} if head else set[str]()
    without = [each.path for each in other if each.path in own]
    since = [each.path for each in other if each.path not in own]
    if without:
        told = "The checks ran with what you had not committed; the commit is without it"
        cli.progress.note(f"{told}: {_named(without)}.", style="yellow")
    if since:
        cli.progress.note(f"Changed since the checks ran, so run them again: {_named(since)}.", style="yellow")
    return {"exact": False}


async def _not_committed(cli: Invocation, came: Outcome, done: Applied, fault: WorkspaceFault) -> Exit:
    """The files are there, and the commit is not, or git's index does not know of it: say how to go back."""
    now = next((each for each in await came.workspace.applied(came.run) if each.id == done.id), done)
    if now.state == "dropped":  # and neither are they
        raise fault
    commit = now.commit
    what = f"Applied, commit {commit[:10]}, but not to its end" if commit else "Applied, not committed"
    cli.out.show(f"{what}: {_files(len(done.paths))}. {fault}")
    cli.progress.note(f"Take it back with: {command(cli, 'undo', came.run)}")
    told = {"paths": list(done.paths), "commit": commit, "reason": fault.reason, "why": str(fault)}
    return cli.out.result("applied_not_committed", Exit.FAILED, team=came.run, **told)


async def _message(cli: Invocation, team: TeamId) -> str:
    """A commit's message: what was asked for, cut where it is very long, for everybody has to read it."""
    tasks = await cli.runtime.ended_tasks(team)
    asked = tasks[0].intention if tasks else "Work of an agent"
    first = " ".join(asked.split())
    subject = first if len(first) <= SUBJECT else f"{first[: SUBJECT - 1]}…"
    if len(asked) > BODY:
        where = f"greenroom show {team} --output-format json"
        cut = f"(Cut: these are {BODY:,} of {len(asked):,} characters. All of it: {where})"
        asked = f"{asked[:BODY].rstrip()}…\n\n{cut}"
    return subject if subject == asked else f"{subject}\n\n{asked}"


def _in_the_way(cli: Invocation, found: Found, clashes: Clashes, *, branch: bool) -> Exit:
    for clash in clashes.clashes:
        cli.progress.note(f"  {one_line(clash.path)}: {clash.why}")
    cli.out.show("Nothing was changed: these files are in the way.")
    if branch:
        cli.progress.note(f"Put it on a branch instead: {command(cli, 'branch', found.team, 'NAME')}")
    told = [{"path": clash.path, "why": clash.why} for clash in clashes.clashes]
    return cli.out.result("clash", Exit.FAILED, team=found.team, clashes=told)


def _files(count: int) -> str:
    return f"{count} file{'s' if count != 1 else ''}"


def _named(paths: Sequence[str]) -> str:
    """Some of them, on one line."""
    return f"{', '.join(map(one_line, paths[:SHOWN]))}{' …' if len(paths) > SHOWN else ''}"


# -------------------------------------------------------------------------------------------- branch, undo, discard


async def branch(
    cli: Invocation,
    name: Id,
    new: Annotated[str, typer.Argument(metavar="BRANCH", help="What the new branch is called.")],
) -> Exit:
    """Put what a job changed on a new branch; your files stay as they are."""
    found, came = await _job(cli, name)
    await _refuse_nothing(cli, found, came)
    message = await _message(cli, found.team)
    await _say_state(cli, found, came)
    made = await came.workspace.branch(new, came.snapshot.commit, came.tip, message)
    if isinstance(made, Clashes):
        return _in_the_way(cli, found, made, branch=False)
    cli.out.show(f"{made.name} is at {made.commit[:10]}.")
    told = await _exactness(cli, came, made.commit)
    return cli.out.result("branched", Exit.DONE, team=found.team, branch=made.name, commit=made.commit, **told)


async def undo(
    cli: Invocation,
    name: Id,
    *,
    revert: Annotated[bool, typer.Option("--revert", help="By a commit on top, where others came since.")] = False,
) -> Exit:
    """Take back what was applied of a job, byte for byte."""
    found, came = await _job(cli, name)
    every = await came.workspace.applied(found.team)
    # What is undone may be on this branch still.
    some = [each for each in every if each.state in BEGUN] or [each for each in every if each.state == "undone"]
    if not some:
        raise _not_applied(found, every)
    async with _told_if_stopped(cli, came):
        done = await came.workspace.undo(some[-1].id, revert=revert)
    if isinstance(done, Clashes):
        return _in_the_way(cli, found, done, branch=False)
    if isinstance(done, Buried):
        again = command(cli, "undo", found.team, "--revert")
        raise refused("buried", done.why, f"A commit on top takes it back: {again}")
    if not done.paths:  # another process was first, or half of it was there and was taken back by hand
        raise _not_applied(found, await came.workspace.applied(found.team))
    cli.out.show(f"Undone: {_named(done.paths)}.")
    return cli.out.result("undone", Exit.DONE, team=found.team, paths=list(done.paths), revert=done.revert, remark="")


def _not_applied(found: Found, every: Sequence[Applied]) -> Refused:
    undone = ": it is undone already" if every and every[-1].state == "undone" else ""
    return refused("not_applied", f"Nothing of {found.team} is applied{undone}.")


async def discard(cli: Invocation, name: Id, *, yes: DoNotAsk = False) -> Exit:
    """Drop the copy in which a job was done. Its commits stay in the repository."""
    found, came = await _job(cli, name)
    holder = await cli.runtime.log.holder(found.team)
    if holder is not None:
        stop = command(cli, "pause", found.team)
        raise refused("works", f"{found.team} works, in {holder.owner}.", f"Stop it first: {stop}")
    applied = any(each.state == "applied" for each in await came.workspace.applied(found.team))
    changes = () if applied else (await came.diff()).changes
    lost = [text for copy in await of_run(found.team) for text in nowhere(copy)]
    told = [f"{found.team} has changed {_files(len(changes))}, and that would go."] if changes else []
    told += [f"This would go for good, for no commit can have it: {'; '.join(lost)}."] if lost else []
    if told and not yes and not (sys.stdin.isatty() and confirm(f"{' '.join(told)} Drop it? [y/N] ")):
        raise refused("not_sure", "Nothing was dropped.", "--yes drops it without asking.")
    await drop(found.team)
    cli.out.show(f"Dropped. The commits of {found.team} stay in the repository, below refs/greenroom.")
    if lost:
        cli.out.show(f"Gone for good, for no commit can have it: {'; '.join(lost)}.")
    return cli.out.result("discarded", Exit.DONE, team=found.team, lost=lost)


# --------------------------------------------------------------------------------------------------------------- blame


async def blame(
    cli: Invocation,
    place: Annotated[str, typer.Argument(metavar="FILE:LINE", help="Which line.")],
) -> Exit:
    """Say which step of which job wrote a line, why, and what proves it."""
    path, _, number = place.rpartition(":")
    if not path or not number.isdecimal() or not int(number):
        raise refused("no_line", f"{place!r} names no line.", "Say FILE:LINE, as cli.py:40.")
    theirs = await workspace(cli.means.root)
    found = await theirs.blame(_inside(path, Path(theirs.root)), int(number))
    if found is None:
        why = f"Line {number} of {path!r} is in no commit yet, and no job wrote it: somebody has changed it here."
        raise refused("in_no_commit", why, "Once you commit it, that commit is named.")
    lines = [harmless(found.text.rstrip()), f"commit {found.commit[:10]}" if found.commit else "in no commit yet"]
    run = step = None
    if found.step is not None:
        run, step = found.step.run, found.step.step
        lines += [f"run {run}, step {step} of {found.step.agent}: {harmless(found.step.summary)}"]
        lines += await _reasons(cli, TeamId(run), StepId(step), unkept=not found.commit)
    else:
        lines.append("No step of a job wrote it.")
    cli.out.show("\n".join(lines))
    return cli.out.result("blamed", Exit.DONE, commit=found.commit, run=run, step=step)


def _inside(path: str, root: Path) -> str:
    """A path that was typed here, as the repository knows it."""
    where = Path(os.path.normpath(Path(path).absolute()))
    if not where.is_relative_to(root):
        raise refused("outside", f"{path!r} is not in {str(root)!r}.", "Go to its repository.")
    return where.relative_to(root).as_posix()


async def _reasons(cli: Invocation, team: TeamId, name: StepId, *, unkept: bool) -> list[str]:
    """What the agent said when it made the call, and what verifies the work; where it is in no commit, what to do."""
    try:
        await find(cli.runtime, team)
    except Refused:
        return ["Its log is not here."]
    steps = await cli.means.steps(team)
    mine = next((step for step in steps if step.step_id == name), None)
    cause = next((step for step in steps if mine is not None and step.step_id == mine.cause), None)
    said = harmless(str(((cause.result if cause else None) or {}).get("text", "")).strip())
    came = await outcome((await cli.runtime.world(team)).team, cli.means.steps)
    report = await report_of(came, steps)
    proofs = [line for line in report.lines if line.startswith(("✓", "✗", "NOT"))]
    commit = f"Commit it with: {command(cli, 'apply', team)}   or take it back with: {command(cli, 'undo', team)}"
    return [*([f"why: {said}"] if said else []), *proofs, *([commit] if unkept and came.snapshot.head else [])]
