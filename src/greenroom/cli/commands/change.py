"""`greenroom diff`, `apply`, `branch`, `discard`, `undo`, `blame`: what to do with the change of a run."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from greenroom.app.conversation.capability_names import CHANGING_RUNS
from greenroom.app.lookup import LAST, TaskReference, resolve_id
from greenroom.app.messages import count_things, to_one_line, translate
from greenroom.app.messages.findings import explain_reason
from greenroom.app.runs.apply_change import (
    ApplyOptions,
    ChangeResult,
    Command,
    apply_change,
    branch_change,
    check_discard,
    describe_pending,
    discard_change,
    explain_line,
    list_governing,
    refuse_no_change,
    refuse_no_commit,
    save_only_memories,
    undo_change,
)
from greenroom.app.runs.report import RunReport, build_report
from greenroom.app.runs.workspaces import RunChange, find_change, find_subtask_change, open_workspace
from greenroom.app.teams.report import describe_missing, find_stage
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.options import Id, YesOption
from greenroom.cli.render.output import strip_control_characters
from greenroom.cli.render.questions import confirm
from greenroom.core.base.errors import make_refusal
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.records import Data
from greenroom.core.ports.workspace import AppliedChange, Conflicts

MAX_NAMES_SHOWN: Final = 5  # files and reasons listed


async def diff(cli: Invocation, name: Id) -> Exit:
    """Print the change of a run as a patch.

    `last` is the newest run that worked on this folder. ID/SUBTASK is the work of one subtask of a team.

    Examples:
      greenroom diff last
      greenroom diff last/code-1 >change.patch

    Exit codes: 0; 2; 3.
    """
    run, _, subtask = name.strip().partition("/")
    reference, run_change = await _find_run_change(cli, run)
    part = await find_subtask_change(run_change, cli.app.steps, subtask) if subtask else None
    if part is None:
        await (resolve_id(cli.runtime, name) if subtask else _note_missing(cli, reference.team))
    run_change = part or run_change
    if cli.out.is_text and not cli.out.is_live:  # programs get all of it, byte for byte
        cli.out.write_bytes(await run_change.workspace.patch(run_change.snapshot.commit, run_change.tip))
        return cli.out.result("shown", Exit.DONE)
    patch = await run_change.diff()
    cli.out.write(patch.text)
    if patch.cut:
        cli.progress.note(
            translate("change.patch_cut", command=render_command(cli, "diff", reference.team)), style="yellow"
        )
    return cli.out.result("shown", Exit.DONE, diff=patch.text, cut=patch.cut)


async def _find_run_change(cli: Invocation, name: str) -> tuple[TaskReference, RunChange]:
    """Find the run by name; `last` is the newest run that worked on the current folder.

    Elsewhere, print which repository the run belongs to.
    """
    reference = await (_find_last_here(cli) if name.strip() == LAST else resolve_id(cli.runtime, name))
    state = await cli.runtime.state(reference.team)
    if state.team.kit not in CHANGING_RUNS:
        raise make_refusal("no_job", translate("change.no_change", team=reference.team))
    if not Path.cwd().resolve().is_relative_to(state.team.workspace):
        cli.progress.note(translate("change.repository", root=state.team.workspace), style="dim")
    return reference, await find_change(state.team, cli.app.steps)


async def _note_missing(cli: Invocation, team: TeamId) -> None:
    """Print which subtasks of a team are not in its change."""
    if missing := describe_missing(await find_stage(cli.runtime, await cli.runtime.state(team))):
        cli.progress.note(missing, style="yellow")


async def _find_last_here(cli: Invocation) -> TaskReference:
    await resolve_id(cli.runtime, LAST)  # refuses if there is no run at all
    here, newest = Path.cwd().resolve(), None
    for info in reversed(await cli.runtime.log.streams()):
        team = (await cli.runtime.state(TeamId(info.stream))).team if info.head.version else None
        if team is not None and team.kit in CHANGING_RUNS and here.is_relative_to(team.workspace):
            return TaskReference(team=team.team_id)
        newest = newest or (team if team is not None and team.kit in CHANGING_RUNS else None)
    hint = translate("change.no_run_anywhere")
    if newest is not None:
        command = render_command(cli, cli.setup.command, newest.team_id)
        hint = translate("change.go_to_folder", newest=newest.team_id, root=newest.workspace, command=command)
    raise make_refusal("no_job_here", translate("change.no_worktree_here", here=str(here)), hint)


async def apply(
    cli: Invocation,
    name: Id,
    *,
    no_commit: Annotated[bool, typer.Option("--no-commit", help="Change the files without a commit.")] = False,
    message: Annotated[str, typer.Option("--message", "-m", help="Message of the one commit.")] = "",
    squash: Annotated[bool, typer.Option("--squash", help="Make one commit of a team's change.")] = False,
    hooks: Annotated[bool, typer.Option("--hooks", help="Run modified git hooks, and the repository's.")] = False,
    no_hooks: Annotated[bool, typer.Option("--no-hooks", help="Do not run your git hooks.")] = False,
    yes: YesOption = False,
) -> Exit:
    """Apply the change of a run in your name.

    A run is one commit; a team has one per subtask. Your git hooks run once, unless the change modifies what they run,
    or only the repository's own settings name them (`core.hooksPath`). --hooks runs them anyway. You are asked first if
    the change touches files that configure agents or tools.

    Examples:
      greenroom apply last
      greenroom apply last --message "Add --json to export"
      greenroom apply last --no-commit

    Exit codes: 0; 1 files conflict, or the commit failed; 2; 3.
    """
    if hooks and no_hooks:
        raise typer.BadParameter(translate("change.hooks_options_exclusive"))
    reference, run_change = await _find_run_change(cli, name)
    if count := await save_only_memories(cli.app, run_change, _commands(cli)):
        cli.out.show(translate("memory.saved", memories=count_things("memory", count)))
        return cli.out.result("applied", Exit.DONE, team=reference.team, paths=[], commit="")
    commits = not no_commit and bool(run_change.snapshot.head)
    if commits:
        await refuse_no_commit(run_change, _commands(cli))
    governing = await _note_governing(cli, run_change)
    if governing and not yes:
        _confirm_governing(cli, reference)
    report = await _report_state(cli, reference, run_change)
    changed = await run_change.workspace.list_changed_hooks(run_change.snapshot.commit, run_change.tip)
    run_hooks = not no_hooks and (hooks or not commits or not changed)
    if commits and not hooks and not no_hooks:
        _report_skipped_hooks(cli, changed, run_change.workspace.local_hooks)
    options = ApplyOptions(message=message, commits=commits, hooks=run_hooks, local_hooks=hooks, squash=squash)
    async with _report_if_stopped(cli, run_change):
        result = await apply_change(cli.app, run_change, options)
    if result.clashes is not None:
        return _report_clashes(cli, reference, result.clashes, branch=True)
    if result.memories:
        cli.out.show(translate("memory.saved", memories=count_things("memory", result.memories)))
    if result.is_empty:
        cli.out.show(translate("change.already_there"))
        return cli.out.result("already", Exit.DONE, team=reference.team, paths=[], commit="")
    if changed and not (commits and run_hooks):
        cli.progress.note(translate("change.next_commit_runs_hooks", paths=_render_paths(changed)))
    if result.fault is not None:
        return _report_not_committed(cli, run_change, result)
    if not no_commit and not commits:
        cli.progress.note(translate("change.no_commit_yet"))
    return _report_applied(cli, report, result, governing)


def _report_skipped_hooks(cli: Invocation, changed: Sequence[str], local: str) -> None:
    """Report the hooks that do not run, because the change or the repository names them. They would run as the person,
    outside the sandbox."""
    if changed:
        cli.progress.note(translate("change.hooks_modified", paths=_render_paths(changed)), style="yellow")
    elif local:
        cli.progress.note(translate("change.hooks_local", path=_render_paths([local])), style="yellow")


def _confirm_governing(cli: Invocation, reference: TaskReference) -> None:
    if not sys.stdin.isatty() or not confirm(translate("change.confirm_governing")):
        again = render_command(cli, "apply", reference.team, "--yes")
        raise make_refusal("configures_agents", translate("change.governing_refused", command=again))


async def _note_governing(cli: Invocation, run_change: RunChange) -> Sequence[str]:
    """Print and return the changed files that configure agents or tools."""
    paths = await list_governing(run_change)
    if paths:
        cli.progress.note(translate("change.governing", paths=", ".join(map(to_one_line, paths))), style="yellow")
    return paths


async def _report_state(cli: Invocation, reference: TaskReference, run_change: RunChange) -> RunReport:
    """Warn if the run is not over or its change is not verified; return the report."""
    if later := await describe_pending(cli.app, reference.team, _commands(cli)):
        cli.progress.note(translate("change.not_finished", team=reference.team, later=later), style="yellow")
    await _note_missing(cli, reference.team)
    report = await build_report(run_change, await cli.app.steps(reference.team))
    is_open = bool(later) and any(reason.code == "not_judged" for reason in report.verdict.reasons)
    if not report.is_verified and not is_open:  # an open run was not judged yet, as the note says
        reasons = [reason.rstrip(".") for reason in report.reasons]
        hidden = len(reasons) - MAX_NAMES_SHOWN
        more = translate("counts.and_more", count=hidden) if hidden > 0 else ""
        shown = strip_control_characters("; ".join(reasons[:MAX_NAMES_SHOWN])) + more
        state = translate(f"states.{report.verdict.state}")
        cli.progress.note(translate("change.verdict", state=state, reasons=shown), style="yellow")
    return report


@asynccontextmanager
async def _report_if_stopped(cli: Invocation, run_change: RunChange) -> AsyncIterator[None]:
    """Report the state of the person's files if they stop the command inside the block.

    The work on the files is always completed. Recovery of an earlier interruption is reported too.
    """
    try:
        yield
    except asyncio.CancelledError:
        applications = await run_change.workspace.list_applied(run_change.run)
        applied = [application for application in applications if application.state == "applied"]
        what = _describe_applied(cli, run_change.run, applied)
        cli.progress.note(translate("change.stopped", applied=what), style="bold")
        raise
    finally:
        report_recovered(cli, run_change.workspace.take_recovered())


def _describe_applied(cli: Invocation, run: str, applied: Sequence[AppliedChange]) -> str:
    if not applied:
        return translate("change.nothing_applied")
    files = count_things("file", len(applied[-1].paths))
    undo_hint = translate("change.undo_hint", command=render_command(cli, "undo", run))
    if applied[-1].commit:
        commit = applied[-1].commit[:10]
        return translate("change.applied_commit_hint", commit=commit, files=files, undo_hint=undo_hint)
    return translate(
        "change.applied_uncommitted_hint", files=files, command=render_command(cli, "apply", run), undo_hint=undo_hint
    )


def report_recovered(cli: Invocation, recovered: Iterable[AppliedChange]) -> None:
    """Report applications that were interrupted by a kill and are completed now."""
    for application in recovered:
        paths = _render_paths(application.paths)
        note = translate(f"change.recovered_{application.state}", run=application.run, paths=paths)
        cli.progress.note(note, style="yellow")


def _report_applied(cli: Invocation, report: RunReport, result: ChangeResult, governing: Sequence[str]) -> Exit:
    commit, count = result.commit, result.commits
    key = f"change.applied{'_already' if result.is_repeated else ''}{('', '_commit', '_commits')[min(count, 2)]}"
    exact = _report_differences(cli, result) if commit else {}
    cli.out.show(translate(key, files=count_things("file", len(result.paths)), count=count, commit=commit[:10]))
    cli.progress.note(translate("change.undo_hint", command=render_command(cli, "undo", result.run)))
    result_fields = {
        "paths": list(result.paths),
        "commit": commit,
        "commits": count,
        "mixed": list[str](),
        "remark": "",
    }
    result_fields |= {"governing": list(governing), "verified": report.is_verified, "unproven": list(report.reasons)}
    return cli.out.result("applied", Exit.DONE, team=result.run, **result_fields, **exact)


def _report_differences(cli: Invocation, result: ChangeResult) -> Data:
    """Warn if a commit does not have exactly the files that were checked."""
    if result.uncommitted:
        paths = _render_paths(result.uncommitted)
        cli.progress.note(translate("change.checked_with_uncommitted", paths=paths), style="yellow")
    if result.changed_since:
        cli.progress.note(
            translate("change.changed_since_checks", paths=_render_paths(result.changed_since)), style="yellow"
        )
    return {"exact": not (result.uncommitted or result.changed_since)}


def _report_not_committed(cli: Invocation, run_change: RunChange, result: ChangeResult) -> Exit:
    """Report that the files are applied but the commit or git's index is not complete, and how to undo it."""
    fault, commit, files = result.fault, result.commit, count_things("file", len(result.paths))
    if commit:
        cli.out.show(translate("change.applied_commit_incomplete", commit=commit[:10], files=files, fault=fault))
    else:
        cli.out.show(translate("change.applied_uncommitted", files=files, fault=fault))
    cli.progress.note(translate("change.undo_hint", command=render_command(cli, "undo", run_change.run)))
    reason = fault.reason if fault is not None else ""
    result_fields = {"paths": list(result.paths), "commit": commit, "reason": reason, "why": str(fault)}
    return cli.out.result("applied_not_committed", Exit.FAILED, team=run_change.run, **result_fields)


def _commands(cli: Invocation) -> Command:
    return partial(render_command, cli)


def _report_clashes(cli: Invocation, reference: TaskReference, clashes: Conflicts, *, branch: bool) -> Exit:
    for clash in clashes.clashes:
        cli.progress.note(f"  {to_one_line(clash.path)}: {explain_reason(clash.why)}")
    cli.out.show(translate("change.conflict"))
    if branch:
        command = render_command(cli, "branch", reference.team, "NAME")
        cli.progress.note(translate("change.branch_instead", command=command))
    clash_fields = [{"path": clash.path, "why": clash.why} for clash in clashes.clashes]
    return cli.out.result("clash", Exit.FAILED, team=reference.team, clashes=clash_fields)


def _render_paths(paths: Sequence[str]) -> str:
    return f"{', '.join(map(to_one_line, paths[:MAX_NAMES_SHOWN]))}{' …' if len(paths) > MAX_NAMES_SHOWN else ''}"


async def branch(
    cli: Invocation,
    name: Id,
    new: Annotated[str, typer.Argument(metavar="BRANCH", help="Name of the new branch.")],
) -> Exit:
    """Put the change of a run on a new branch.

    Your files stay as they are.

    Examples:
      greenroom branch last add-json
      greenroom branch last review/add-json

    Exit codes: 0; 1 files conflict; 2; 3.
    """
    reference, run_change = await _find_run_change(cli, name)
    await refuse_no_change(cli.app, run_change, _commands(cli))
    governing = await _note_governing(cli, run_change)
    await _report_state(cli, reference, run_change)
    branched = await branch_change(cli.app, run_change, new)
    if branched.clashes is not None:
        return _report_clashes(cli, reference, branched.clashes, branch=False)
    cli.out.show(translate("change.branched", name=new, commit=branched.commit[:10]))
    made = {"branch": new, "commit": branched.commit, "governing": list(governing)}
    exact_fields = _report_differences(cli, branched)
    return cli.out.result("branched", Exit.DONE, team=reference.team, **made, **exact_fields)


async def undo(
    cli: Invocation,
    name: Id,
    *,
    revert: Annotated[bool, typer.Option("--revert", help="Undo with a new commit, if others came later.")] = False,
) -> Exit:
    """Undo an applied change, byte for byte.

    If other commits came later, --revert undoes it with a new commit.

    Examples:
      greenroom undo last
      greenroom undo last --revert

    Exit codes: 0; 1 files conflict; 2; 3.
    """
    reference, run_change = await _find_run_change(cli, name)
    async with _report_if_stopped(cli, run_change):
        result = await undo_change(cli.app, run_change, _commands(cli), revert=revert)
    if result.clashes is not None:
        return _report_clashes(cli, reference, result.clashes, branch=False)
    if result.paths:
        cli.out.show(translate("change.undone", paths=_render_paths(result.paths)))
    if result.memories:
        cli.out.show(translate("memory.taken_back", memories=count_things("memory", result.memories)))
    return cli.out.result(
        "undone", Exit.DONE, team=reference.team, paths=list(result.paths), revert=result.commit, remark=""
    )


async def discard(cli: Invocation, name: Id, *, yes: YesOption = False) -> Exit:
    """Delete the worktree of a run.

    Its commits stay in the repository, so you can still resume, apply or undo it. You are asked first if the change is
    not applied.

    Examples:
      greenroom discard last
      greenroom discard last --yes

    Exit codes: 0; 2; 3.
    """
    reference, run_change = await _find_run_change(cli, name)
    check = await check_discard(cli.app, run_change, _commands(cli))
    question = translate("change.confirm_delete_worktree", warnings=" ".join(check.warnings))
    if check.warnings and not yes and not (sys.stdin.isatty() and confirm(question)):
        raise make_refusal("not_sure", translate("change.nothing_deleted"), translate("change.delete_with_yes"))
    await discard_change(run_change)
    cli.out.show(translate("change.deleted", team=reference.team))
    if check.lost:
        cli.out.show(translate("change.lost", lost="; ".join(check.lost)))
    return cli.out.result("discarded", Exit.DONE, team=reference.team, lost=list(check.lost))


async def blame(
    cli: Invocation,
    place: Annotated[str, typer.Argument(metavar="FILE:LINE", help="A line of a file, like cli.py:40.")],
) -> Exit:
    """Show which step wrote a line, and why.

    It also shows the run of the step and the checks that verified it.

    Examples:
      greenroom blame src/export.py:7
      greenroom blame README.md:1 --output-format json

    Exit codes: 0; 2; 3.
    """
    path, _, number = place.rpartition(":")
    if not path or not number.isdecimal() or not int(number):
        raise make_refusal("no_line", translate("change.not_a_line", place=place), translate("change.write_file_line"))
    user_workspace = await open_workspace(cli.app.root)
    line_origin = await user_workspace.blame(_find_path_in_repository(path, Path(user_workspace.root)), int(number))
    if line_origin is None:
        why = translate("change.line_not_committed", number=number, path=path)
        raise make_refusal("in_no_commit", why, translate("change.commit_first"))
    key = "change.commit" if line_origin.commit else "change.not_committed_yet"
    lines = [
        strip_control_characters(line_origin.text.rstrip()),
        translate(key, commit=line_origin.commit[:10]),
    ]
    run = step = None
    if line_origin.step is not None:
        run, step = line_origin.step.run, line_origin.step.step
        summary = strip_control_characters(line_origin.step.summary)
        lines += [translate("change.line_step", run=run, step=step, agent=line_origin.step.agent, summary=summary)]
        lines += await explain_line(
            cli.app, TeamId(run), StepId(step), _commands(cli), is_uncommitted=not line_origin.commit
        )
    else:
        lines.append(translate("change.no_step_wrote"))
    cli.out.show("\n".join(lines))
    return cli.out.result("blamed", Exit.DONE, commit=line_origin.commit, run=run, step=step)


def _find_path_in_repository(path: str, root: Path) -> str:
    where = Path(os.path.normpath(Path(path).absolute()))
    if not where.is_relative_to(root):
        raise make_refusal(
            "outside",
            translate("change.outside_repository", path=path, root=str(root)),
            translate("change.go_to_repository"),
        )
    return where.relative_to(root).as_posix()
