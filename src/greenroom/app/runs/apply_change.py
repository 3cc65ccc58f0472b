"""Apply, branch, undo and discard the change of a run, and explain its lines. Front ends ask the person and report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.app.approvals import find_kind, pending_approvals, quote_question, words_to_type
from greenroom.app.context import AppContext
from greenroom.app.lookup import resolve_id
from greenroom.app.memories import save_kept, take_back
from greenroom.app.messages import count_things, translate
from greenroom.app.runs.report import build_report
from greenroom.app.runs.workspaces import RunChange, describe_left_out, drop_worktrees, find_change, list_run_worktrees
from greenroom.core.base.errors import RefusedError, make_refusal
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.records import record
from greenroom.core.base.text import remove_control_characters
from greenroom.core.ports.files import is_governing
from greenroom.core.ports.workspace import AppliedChange, Conflicts, UndoBlocked, WorkspaceFault

MAX_SUBJECT_CHARS: Final = 70  # characters of a commit's subject
MAX_BODY_CHARS: Final = 4_000  # characters of a request in a commit message
MAX_QUESTION_CHARS: Final = 200  # characters of a question or a reason
APPLIED_STATES: Final = ("applying", "applied", "undoing")

Command: TypeAlias = Callable[..., str]
"""Returns the command line for these words, for a hint."""


@record
class ApplyOptions:
    """How a change is applied: the message of one commit, whether it is committed, and which hooks run."""

    message: str = ""
    commits: bool = True
    hooks: bool = True
    local_hooks: bool = False
    squash: bool = False


@record
class ChangeResult:
    """What was done with a change: nothing if files `clashes`.

    With a `fault` the files are applied, but not their commit. `uncommitted` and `changed_since` are files in which the
    commit differs from what was checked. `memories` were saved, or taken back.
    """

    run: str
    paths: tuple[str, ...] = ()
    commit: str = ""
    commits: int = 0
    is_repeated: bool = False
    is_empty: bool = False
    clashes: Conflicts | None = None
    fault: WorkspaceFault | None = None
    uncommitted: tuple[str, ...] = ()
    changed_since: tuple[str, ...] = ()
    memories: int = 0


@record
class DiscardCheck:
    """What discarding a change would lose. `lost` files exist only in the worktree."""

    warnings: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


# --------------------------------------------------------------------------------------------------- before a change


async def refuse_no_change(app: AppContext, change: RunChange, command: Command) -> None:
    """Refuse if the run changed nothing, or nothing yet."""
    if change.tip == change.snapshot.commit:
        later = await describe_pending(app, TeamId(change.run), command)
        key = "change.nothing_changed_yet" if later else "change.nothing_changed"
        raise make_refusal("nothing_changed", translate(key, team=change.run, later=later))


async def refuse_no_commit(change: RunChange, command: Command) -> None:
    """Refuse if no commit can be made now, unless the change is applied already."""
    if any(applied.state == "applied" for applied in await change.workspace.list_applied(change.run)):
        return
    try:
        await change.workspace.check_can_commit()
    except WorkspaceFault as fault:
        hint = translate("change.apply_without_commit", without=command("apply", change.run, "--no-commit"))
        raise make_refusal("no_commit_now", str(fault), hint) from fault


async def list_governing(change: RunChange) -> Sequence[str]:
    """Return the changed files that configure agents or tools."""
    changes = (await change.workspace.diff(change.snapshot.commit, change.tip, limit=0)).changes
    return sorted({path for entry in changes for path in (entry.path, entry.before) if is_governing(path)})


async def describe_pending(app: AppContext, team: TeamId, command: Command) -> str:
    """Describe what an unfinished run waits for and how to resume it; empty if it is over."""
    state = await app.runtime.state(team)
    if not state.tasks:
        return ""
    if pending := pending_approvals(state):
        approval, (answer, other) = pending[0], words_to_type(state, pending[0])
        is_own = find_kind(state, approval) in ("plan", "confirmation")
        question = _shorten(remove_control_characters(quote_question(approval, confirmation=is_own)))
        line = command("answer", team, answer)
        how = translate("change.answer_with", command=f"{line}   ({other})" if other else line)
        return translate("change.waits_for_answer", question=question, how=how)
    holder = await app.runtime.log.holder(team)
    if holder is not None:
        return translate("change.still_running", owner=holder.owner)
    status = await app.runtime.status(team, next(iter(state.tasks)))
    if not status.reason:
        return translate("change.not_running", command=command("resume", team))
    return translate("change.paused", reason=_shorten(status.reason), command=command("resume", team))


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_QUESTION_CHARS else f"{flat[: MAX_QUESTION_CHARS - 1].rstrip()}…"


# ----------------------------------------------------------------------------------------------------------- the verbs


async def save_only_memories(app: AppContext, change: RunChange, command: Command) -> int:
    """Save the memories of a run that changed no file. Return how many were new, 0 if it changed files.

    Refuse if it kept none either.
    """
    count = await _save_memories(app, change.run) if change.tip == change.snapshot.commit else 0
    if not count:
        await refuse_no_change(app, change, command)
    return count


async def apply_change(app: AppContext, change: RunChange, options: ApplyOptions) -> ChangeResult:
    """Apply a change to the person's files, commit it, and save the memories of its run."""
    run = change.run
    done = await change.workspace.apply(run, change.snapshot.commit, change.tip)
    if isinstance(done, Conflicts):
        return ChangeResult(run=run, clashes=done)
    memories = await _save_memories(app, run)
    if not done.id:
        return ChangeResult(run=run, is_empty=True, memories=memories)
    if not options.commits:
        return ChangeResult(run=run, paths=done.paths, memories=memories, is_repeated=not done.fresh)
    text = options.message.strip()
    try:
        made = await change.workspace.commit(
            done.id,
            text or await build_message(app, TeamId(run)),
            hooks=options.hooks,
            local_hooks=options.local_hooks,
            squash=options.squash or bool(text),
        )
    except WorkspaceFault as fault:
        applied = await change.workspace.list_applied(run)
        now = next((application for application in applied if application.id == done.id), done)
        if now.state == "dropped":  # the files are not applied either
            raise
        return ChangeResult(run=run, paths=done.paths, memories=memories, commit=now.commit, fault=fault)
    uncommitted, since = await _compare_commit(change, made.commit)
    return ChangeResult(
        run=run,
        paths=done.paths,
        memories=memories,
        commit=made.commit,
        commits=made.commits,
        is_repeated=not made.fresh,
        uncommitted=uncommitted,
        changed_since=since,
    )


async def branch_change(app: AppContext, change: RunChange, name: str) -> ChangeResult:
    """Put a change on a new branch. The person's files stay as they are."""
    message = await build_message(app, TeamId(change.run))
    made = await change.workspace.branch(name, change.snapshot.commit, change.tip, message)
    if isinstance(made, Conflicts):
        return ChangeResult(run=change.run, clashes=made)
    uncommitted, since = await _compare_commit(change, made.commit)
    return ChangeResult(run=change.run, commit=made.commit, uncommitted=uncommitted, changed_since=since)


async def undo_change(app: AppContext, change: RunChange, command: Command, *, revert: bool = False) -> ChangeResult:
    """Undo an applied change, byte for byte. With `revert`, by a new commit; that is in the result."""
    run, applications = change.run, await change.workspace.list_applied(change.run)
    # An undone change may still be on this branch.
    undoable = [application for application in applications if application.state in APPLIED_STATES] or [
        application for application in applications if application.state == "undone"
    ]
    if not undoable and (memories := await _take_back_memories(app, run)):
        return ChangeResult(run=run, memories=memories)
    if not undoable:
        raise _make_not_applied_error(run, applications)
    done = await change.workspace.undo(undoable[-1].id, revert=revert)
    if isinstance(done, Conflicts):
        return ChangeResult(run=run, clashes=done)
    if isinstance(done, UndoBlocked):
        again = command("undo", run, "--revert")
        raise make_refusal("buried", done.why, translate("change.undo_by_revert", command=again))
    if not done.paths:  # another process was first, or the person undid a part by editing
        raise _make_not_applied_error(run, await change.workspace.list_applied(run))
    return ChangeResult(run=run, paths=done.paths, commit=done.revert, memories=await _take_back_memories(app, run))


def _make_not_applied_error(run: str, applications: Sequence[AppliedChange]) -> RefusedError:
    is_undone = bool(applications) and applications[-1].state == "undone"
    key = "change.undone_already" if is_undone else "change.not_applied"
    return make_refusal("not_applied", translate(key, team=run))


async def check_discard(app: AppContext, change: RunChange, command: Command) -> DiscardCheck:
    """Return what discarding a change would lose. Refuse while its run works."""
    run = change.run
    holder = await app.runtime.log.holder(run)
    if holder is not None:
        why = translate("change.runs_in", team=run, owner=holder.owner)
        raise make_refusal("works", why, translate("change.stop_first", stop=command("pause", run)))
    applied = any(entry.state == "applied" for entry in await change.workspace.list_applied(run))
    changes = () if applied else (await change.diff()).changes
    lost = tuple(text for worktree in await list_run_worktrees(run) for text in describe_left_out(worktree))
    count = count_things("file", len(changes))
    warnings = [translate("change.unapplied_changes", team=run, count_files=count)] if changes else []
    warnings += [translate("change.files_would_be_lost", lost="; ".join(lost))] if lost else []
    return DiscardCheck(warnings=tuple(warnings), lost=lost)


async def discard_change(change: RunChange) -> None:
    """Delete the worktrees of a run. Its commits stay in the repository."""
    await drop_worktrees(change.run)
    await change.workspace.discard(change.run)


async def _compare_commit(change: RunChange, commit: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files in which a commit differs from what was checked: those that the person had not committed, and
    those that they changed since. No check has seen that."""
    other = (await change.workspace.diff(change.tip, commit, limit=0)).changes
    head, base = change.snapshot.head, change.snapshot.commit
    before = (await change.workspace.diff(head, base, limit=0)).changes if other and head else ()
    uncommitted = {entry.path for entry in before}
    without = tuple(entry.path for entry in other if entry.path in uncommitted)
    return without, tuple(entry.path for entry in other if entry.path not in uncommitted)


async def build_message(app: AppContext, team: TeamId) -> str:
    """Return the message of a commit: the request of the run."""
    tasks = await app.runtime.ended_tasks(team)
    request = tasks[0].intention if tasks else translate("change.default_commit_message")
    first = " ".join(request.split())
    subject = first if len(first) <= MAX_SUBJECT_CHARS else f"{first[: MAX_SUBJECT_CHARS - 1]}…"
    if len(request) > MAX_BODY_CHARS:
        where = f"greenroom show {team} --output-format json"
        cut = translate("change.message_cut", kept=MAX_BODY_CHARS, size=len(request), where=where)
        request = f"{request[:MAX_BODY_CHARS].rstrip()}…\n\n{cut}"
    return subject if subject == request else f"{subject}\n\n{request}"


async def _save_memories(app: AppContext, run: str) -> int:
    """Save the memories that an ended run kept for the project. Return how many were new."""
    state = await app.runtime.state(TeamId(run))
    return 0 if state.tasks else save_kept(app.memories(Path(state.team.workspace)), state)


async def _take_back_memories(app: AppContext, run: str) -> int:
    """Remove the memories of a run from the project's. Return how many were there."""
    state = await app.runtime.state(TeamId(run))
    return take_back(app.memories(Path(state.team.workspace)), state)


# --------------------------------------------------------------------------------------------------------------- blame


async def explain_line(
    app: AppContext, team: TeamId, name: StepId, command: Command, *, is_uncommitted: bool
) -> list[str]:
    """Return what the agent wrote when it made the call, and the checks; if it is not committed, how to commit it."""
    try:
        await resolve_id(app.runtime, team)
    except RefusedError:
        return [translate("change.run_log_missing")]
    steps = await app.steps(team)
    line_step = next((step for step in steps if step.step_id == name), None)
    cause = next((step for step in steps if line_step is not None and step.step_id == line_step.cause), None)
    reason = remove_control_characters(str(((cause.result if cause else None) or {}).get("text", "")).strip())
    change = await find_change((await app.runtime.state(team)).team, app.steps)
    report = await build_report(change, steps)
    proofs = [line for line in report.lines if line.startswith(("✓", "✗", "NOT"))]
    commit = translate("change.commit_or_undo", command=command("apply", team), command2=command("undo", team))
    return [
        *([translate("change.why", reason=reason)] if reason else []),
        *proofs,
        *([commit] if is_uncommitted and change.snapshot.head else []),
    ]
