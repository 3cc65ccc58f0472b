"""The change of a run: its verdict and receipts, its files, who wrote their lines, its conflicts, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, cast

from fastapi import APIRouter, Query

from greenroom.app.conversation.capability_names import CHANGING_RUNS, TEAM_RUN
from greenroom.app.messages import count_things, to_one_line, translate
from greenroom.app.messages.findings import explain_reason, render_finding
from greenroom.app.runs.apply_change import (
    APPLIED_STATES,
    ApplyOptions,
    ChangeResult,
    apply_change,
    branch_change,
    check_discard,
    discard_change,
    list_governing,
    refuse_no_commit,
    save_only_memories,
    undo_change,
)
from greenroom.app.runs.report import RunReport, build_report
from greenroom.app.runs.workspaces import RunChange, find_change
from greenroom.app.teams.integration import find_open_conflicts, integrate_results, list_conflicts, read_conflict
from greenroom.app.teams.integration_report import render_markdown
from greenroom.core.base.errors import RefusedError, make_refusal
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.text import escape_surrogates
from greenroom.core.ports.checks import CheckResult
from greenroom.core.ports.workspace import CommitInfo, PathChange, WorkspaceFault
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from greenroom.http import inputs, schemas
from greenroom.http.context import At, Context, Cursor, Limit, RunPath, ServerContext, cut_page
from greenroom.http.routes.runs import is_over
from greenroom.runs.discovery import is_check_setup, is_test
from greenroom.runs.verdict import DELIVER, find_base_report, read_report
from greenroom.teamwork.conflicts import ConflictRecord

MAX_FILE_DIFF_BYTES: Final = 400_000
MAX_LOG_CHARS: Final = 400_000
FilePath = Annotated[str, Query(min_length=1, max_length=4_000, description="A file of the change, as it lists it.")]

router = APIRouter(tags=["changes"])


def name_command(*words: str) -> str:
    """Return a command line, for a hint."""
    return f"`{' '.join(('greenroom', *words))}`"


async def _find_change(
    context: ServerContext, run: TeamId, at: int | None = None
) -> tuple[TeamState, RunChange, Sequence[Step]]:
    """Return the change of a run at a version, and the steps that had ended by then."""
    state = await context.reader.read(run, at)
    if state.team.kit not in CHANGING_RUNS:
        raise make_refusal("no_such_change", translate("change.no_change", team=run))
    steps = [step for step in await context.app.steps(run) if at is None or step.ended_in <= at]
    return state, await find_change(state.team, context.app.steps, at), steps


@router.get("/runs/{run}/change")
async def read_change(context: Context, run: RunPath, at: At = None) -> schemas.Change:
    """Return the change of a run: the verdict with its receipts first, then the files, changed tests first."""
    state, change, steps = await _find_change(context, run, at)
    report = await build_report(change, steps)
    writers = await change.workspace.list_writers(change.snapshot.commit, change.tip)
    is_past = state.version < (await context.runtime.log.head(run)).version
    applied = [
        entry
        for entry in await change.workspace.list_applied(run)
        if entry.state in APPLIED_STATES and (not is_past or (is_over(state) and entry.tip == change.tip))
    ]
    is_kept = is_past or bool(applied) or any(kept.unapplied for kept in await change.workspace.list_kept_runs(run))
    conflicts = await list_conflicts(context.app, state, steps) if state.team.kit == TEAM_RUN else ()
    files = [_make_file(entry, writers) for entry in report.diff.changes]
    states: dict[schemas.ChangeState, bool] = {
        "none": not files,
        "open": not is_over(state),
        "applied": bool(applied),
        "ready": is_kept,
        "discarded": True,
    }
    is_judged = bool(report.verdict.receipts) or is_over(state)
    sentence = translate(f"states.{report.verdict.state}") if is_judged else translate("actions.not_judged")
    return schemas.Change.make(
        report,
        at=state.version,
        state=next(name for name, is_true in states.items() if is_true),
        sentence=sentence,
        verdict=report.verdict.state if is_judged else None,
        reasons=report.reasons,
        notes=[render_finding(note) for note in report.verdict.notes],
        receipts=_make_receipts(report, steps),
        files=sorted(files, key=lambda file: not (file.is_test or is_check_setup(file.path))),
        commit=applied[-1].commit if applied else "",
        conflicts=len(conflicts),
    )


def _make_file(entry: PathChange, writers: Mapping[str, Sequence[CommitInfo]]) -> schemas.ChangedFile:
    steps = (*writers.get(entry.path, ()), *writers.get(entry.before, ()))
    agents = list(dict.fromkeys(step.agent for step in steps if step.agent))
    return schemas.ChangedFile.make(entry, is_binary=entry.binary, is_test=is_test(entry.path), agents=agents)


def _make_receipts(report: RunReport, steps: Sequence[Step]) -> list[schemas.Receipt]:
    base, results = find_base_report(steps), _read_results(steps)
    before = {entry.check: entry for entry in base.checks} if base is not None else {}
    receipts = list[schemas.Receipt]()
    for receipt in report.verdict.receipts:
        result = results.get(receipt.check)
        compared = result.compared if result is not None else None
        receipts.append(
            schemas.Receipt.make(
                receipt,
                before=before[receipt.check].outcome if receipt.check in before else "",
                failing=[*compared.new, *compared.old] if compared is not None else [],
                log=receipt.check if result is not None and result.output else "",
            )
        )
    return receipts


def _read_results(steps: Sequence[Step]) -> dict[str, CheckResult]:
    """Return the newest result of each check on what was delivered."""
    reports = (read_report(step) for step in steps if step.work.executor == DELIVER)
    return {entry.check: entry for report in reports if report is not None for entry in report.checks}


async def _find_file(change: RunChange, path: str) -> PathChange:
    """Return the changed file that a list names. Raise `RefusedError` if there is none."""
    entries = (await change.workspace.diff(change.snapshot.commit, change.tip, limit=0)).changes
    entry = next((entry for entry in entries if escape_surrogates(entry.path) == path), None)
    if entry is None:
        raise make_refusal("no_such_file", translate("actions.no_file", path=path))
    return entry


@router.get("/runs/{run}/change/file")
async def read_file_diff(context: Context, run: RunPath, path: FilePath, at: At = None) -> schemas.FileDiff:
    """Return the unified diff of one file. A large one is cut."""
    _, change, _ = await _find_change(context, run, at)
    entry = await _find_file(change, path)
    paths, pair = list(filter(None, (entry.before, entry.path))), (change.snapshot.commit, change.tip)
    diff = await change.workspace.diff(*pair, limit=MAX_FILE_DIFF_BYTES, paths=paths)
    return schemas.FileDiff(path=path, text=diff.text, is_cut=diff.cut)


@router.get("/runs/{run}/change/blame")
async def blame_file(
    context: Context, run: RunPath, path: FilePath, at: At = None, cursor: Cursor = "", limit: Limit = 100
) -> schemas.Page[schemas.BlameLine]:
    """Say for each line of a changed file which step wrote it. Older lines have no step."""
    _, change, steps = await _find_change(context, run, at)
    entry = await _find_file(change, path)
    try:
        origins = await change.workspace.blame_file(change.snapshot.commit, change.tip, entry.path)
    except WorkspaceFault as fault:
        raise make_refusal("no_such_file", str(fault)) from None
    subtasks = {step.step_id: str(step.subtask_id or "") for step in steps}
    lines = [
        schemas.BlameLine.make(
            origin.step,
            line=number,
            commit=origin.commit,
            subtask=subtasks.get(StepId(origin.step.step), "") if origin.step else "",
            message=origin.step.summary if origin.step else "",
        )
        for number, origin in enumerate(origins, start=1)
    ]
    return cut_page(lines, limit, cursor)


@router.get("/runs/{run}/change/log")
async def read_check_log(
    context: Context, run: RunPath, check: Annotated[str, Query(min_length=1, max_length=200)], at: At = None
) -> schemas.Text:
    """Return what a check printed. Of a long log, the end."""
    _, _, steps = await _find_change(context, run, at)
    result = _read_results(steps).get(check)
    if result is None or not result.output:
        raise make_refusal("no_such_log", translate("actions.no_log", check=check))
    return schemas.Text(text=(await context.app.blob(result.output)).decode(errors="replace")[-MAX_LOG_CHARS:])


@router.get("/runs/{run}/conflicts")
async def read_conflicts(
    context: Context, run: RunPath, at: At = None, cursor: Cursor = "", limit: Limit = 100
) -> schemas.Page[schemas.Conflict]:
    """List the conflicts of a team run with their versions, and which rung of the ladder merged each."""
    state = await context.reader.read(run, at)
    if state.team.kit != TEAM_RUN:
        return schemas.Page(items=[], total=0)
    steps = [step for step in await context.app.steps(run) if at is None or step.ended_in <= at]
    known = await list_conflicts(context.app, state, steps)
    waiting = {
        record.digest: approval.approval_id for approval, records in find_open_conflicts(state) for record in records
    }
    page = cut_page(known, limit, cursor)
    rows = [await _make_conflict(context, found, waiting.get(found.digest, "")) for found in page.items]
    return schemas.Page(items=rows, next=page.next, total=page.total)


async def _make_conflict(context: ServerContext, found: ConflictRecord, approval: str) -> schemas.Conflict:
    fields = await read_conflict(context.app.blob, found)
    left, right = cast("Sequence[str | None]", fields["versions"])
    return schemas.Conflict.make(
        found,
        id=found.digest,
        why=found.why or found.description,
        left_subtask=found.subtasks[0],
        right_subtask=found.subtasks[1],
        base=str(fields["original"] or ""),
        left=left or "",
        right=right or "",
        result=str(fields["result"] or ""),
        dropped=found.dropped_lines,
        approval=approval,
    )


@router.get("/runs/{run}/report")
async def read_report_of_team(context: Context, run: RunPath, at: At = None) -> schemas.Text:
    """Return the integration report of a team run at a version, as Markdown."""
    await context.reader.read(run, at)  # refuse a version that is not there
    result = await integrate_results(context.app, run, at)
    return schemas.Text(
        text=render_markdown(result, context.app.settings.team.min_coverage), media_type="text/markdown"
    )


async def change_run(context: ServerContext, run: TeamId, verb: str, body: inputs.VerbInput) -> schemas.VerbResult:
    """Apply, branch, undo or discard the change of a run. What a person has to confirm is refused without it."""
    _, change, _ = await _find_change(context, run)
    match verb:
        case "apply":
            return await _apply(context, change, body)
        case "branch":
            if not body.branch.strip():
                raise make_refusal("invalid_branch", translate("actions.no_branch"))
            result = await branch_change(context.app, change, body.branch.strip())
            message = translate("change.branched", name=body.branch.strip(), commit=result.commit[:10])
        case "undo":
            result = await _undo(context, change, revert=body.force)
            paths = ", ".join(map(to_one_line, result.paths)) or translate("actions.memories")
            message = translate("change.undone", paths=paths)
        case _:
            check = await check_discard(context.app, change, name_command)
            if check.warnings and not body.force:
                raise make_refusal("not_sure", " ".join(check.warnings), translate("actions.confirm"))
            await discard_change(change)
            return schemas.VerbResult(message=translate("change.deleted", team=run))
    return _make_result(result, message)


async def _undo(context: ServerContext, change: RunChange, *, revert: bool) -> ChangeResult:
    try:
        return await undo_change(context.app, change, name_command, revert=revert)
    except RefusedError as refusal:
        if refusal.rejection.code != "buried":
            raise
        raise make_refusal("buried", refusal.why, translate("actions.undo_by_commit")) from None


async def _apply(context: ServerContext, change: RunChange, body: inputs.VerbInput) -> schemas.VerbResult:
    if count := await save_only_memories(context.app, change, name_command):
        return schemas.VerbResult(message=translate("memory.saved", memories=count_things("memory", count)))
    commits = bool(change.snapshot.head)
    if commits:
        await refuse_no_commit(change, name_command)
    governing = await list_governing(change)
    if governing and not body.confirm_governing:
        paths = ", ".join(map(to_one_line, governing))
        raise make_refusal(
            "configures_agents", translate("change.governing", paths=paths), translate("actions.confirm")
        )
    changed = await change.workspace.list_changed_hooks(change.snapshot.commit, change.tip)
    options = ApplyOptions(message=body.message, commits=commits, hooks=not (commits and changed))
    result = await apply_change(context.app, change, options)
    files = count_things("file", len(result.paths))
    if result.is_empty:
        message = translate("change.already_there")
    elif result.fault is not None:
        message = translate("change.applied_uncommitted", files=files, fault=result.fault)
    else:
        key = f"change.applied{('', '_commit', '_commits')[min(result.commits, 2)]}"
        message = translate(key, files=files, count=result.commits, commit=result.commit[:10])
    return _make_result(result, message)


def _make_result(result: ChangeResult, message: str) -> schemas.VerbResult:
    if result.clashes is not None:
        clashes = [f"{clash.path}: {explain_reason(clash.why)}" for clash in result.clashes.clashes]
        return schemas.VerbResult(done=False, message=translate("change.conflict"), clashes=clashes)
    hints = [
        translate(f"change.{key}", paths=", ".join(map(to_one_line, paths)))
        for key, paths in (
            ("checked_with_uncommitted", result.uncommitted),
            ("changed_since_checks", result.changed_since),
        )
        if paths
    ]
    return schemas.VerbResult(message=message, hint=" ".join(hints), commit=result.commit)
