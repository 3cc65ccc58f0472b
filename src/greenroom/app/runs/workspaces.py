"""The workspaces of runs: a worktree of the person's files as they were at the start, with one commit per step.

Rewinding creates a new run that starts after a step of another run, with the files of that moment. Its own log
determines its start.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final
from weakref import WeakKeyDictionary

from greenroom.adapters.git.repository import find_layout
from greenroom.adapters.git.workspace import GitWorkspace, is_known
from greenroom.adapters.git.worktree import GitWorktrees
from greenroom.app.clock import new_team_id
from greenroom.app.conversation.capability_names import CHANGE_RUN, CHANGING_RUNS, TEAM_RUN
from greenroom.app.conversation.chat_input import is_secret
from greenroom.app.conversation.send import send_to_run
from greenroom.app.lookup import TaskReference
from greenroom.app.messages import to_one_line, translate
from greenroom.app.messages.findings import explain_reason
from greenroom.app.runtime import Runtime
from greenroom.app.settings.home import home_folder, worktrees_folder
from greenroom.app.settings.layers import load_settings
from greenroom.app.toolset.redaction import remove_secrets
from greenroom.core.base.errors import WorldFault, make_refusal
from greenroom.core.base.ids import AgentId, StepId, SubtaskId, TeamId
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.codec import decode_event
from greenroom.core.ports.workspace import (
    MAIN_THREAD,
    Conflicts,
    Diff,
    RetainedRun,
    TreeSnapshot,
    Workspace,
    WorkspaceFault,
    Worktrees,
    WorktreeStatus,
    is_scratch,
)
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.reducer import reduce
from greenroom.core.state.step import Step, StepEnded, Work, apply_end
from greenroom.core.state.team import Team
from greenroom.core.state.team_state import EMPTY_STATE
from greenroom.runs import checkout
from greenroom.runs.verdict import BASE_KEY, COMMIT_KEY, INTEGRATED_KEY, THREAD_KEY
from greenroom.runs.workspace import History, RunWorkspace
from greenroom.teamwork.plan_graph import BASELINE_SUBTASK

FOLDERS_HISTORY: Final = "folders"
"""The folder for the history of workspaces outside any repository. It is beside the log, so it is not cleaned up."""

MAX_FOLDER_FILES: Final = 20_000
MILLIS_PER_DAY: Final = 24 * 3600 * 1000
IGNORED_FOLDERS: Final = frozenset({"node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox"})


_open_workspaces: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[Path, bool], GitWorkspace]]] = (
    WeakKeyDictionary()
)
"""The open workspaces by event loop, and whether git has them. A repository is opened once per loop."""


async def open_workspace(root: Path) -> GitWorkspace:
    """Open the workspace of a folder, from the root of its repository."""
    open_workspaces = _open_workspaces.setdefault(asyncio.get_running_loop(), {})
    key = (root, has_repository(root))  # a person can run `git init` meanwhile
    if key not in open_workspaces:
        open_workspaces[key] = await _find_workspace(root)
    return open_workspaces[key]


async def _find_workspace(root: Path) -> GitWorkspace:
    try:  # git runs the person's hooks: known keys are removed from their environment
        providers = tuple(load_settings({}, os.environ, root).settings.providers.values())
    except WorldFault:
        providers = ()  # unreadable settings provide no keys
    history_folder, env = home_folder() / FOLDERS_HISTORY, remove_secrets(os.environ, providers)
    return await GitWorkspace.find(
        root,
        worktrees_folder(),
        own_folder=history_folder,
        env=env,
        is_secret=lambda path: is_secret(PurePosixPath(path)),
    )


def has_repository(root: Path) -> bool:
    """Whether a folder is in a git repository that is not the person's whole home."""
    return find_layout(root, home=Path.home()) is not None


async def refuse_large_folder(root: Path) -> None:
    """Raise `WorldFault` for a folder outside any repository that is too large to copy."""
    if has_repository(root):
        return
    if root == Path.home() or await asyncio.to_thread(_has_more_than, root, MAX_FOLDER_FILES):
        raise WorldFault("runs.folder_too_large", root=str(root), max_folder_files=MAX_FOLDER_FILES)


def _has_more_than(root: Path, limit: int) -> bool:
    count = 0
    for _, folders, files in os.walk(root):
        folders[:] = [folder for folder in folders if folder not in IGNORED_FOLDERS]
        count += len(files)
        if count > limit:
            return True
    return False


async def open_run_workspace(team: Team, history: History) -> RunWorkspace:
    """Open a run's workspace, or create it for a new run.

    A forked run starts from its origin's snapshot, at the last commit of its own log. Steps that a crash left
    unfinished are completed here. If those files no longer exist, the run is refused.
    """
    return await open_thread(team, *await find_snapshot(team, history))


async def open_thread(
    team: Team, workspace: Workspace, snapshot: TreeSnapshot, thread: str = MAIN_THREAD
) -> RunWorkspace:
    """Open the worktree of a thread, or create it at the commit of the snapshot."""
    worktree = await workspace.open(team.team_id, thread, snapshot.commit)
    return RunWorkspace(
        run=team.team_id,
        mount_point=Path(team.workspace),
        workspace=workspace,
        snapshot=snapshot,
        worktree=worktree,
        thread=thread,
        shared_folders=tuple(await workspace.list_shared_folders()),
        git=await worktree.make_view(),
    )


async def find_snapshot(team: Team, history: History) -> tuple[GitWorkspace, TreeSnapshot]:
    """Return the person's workspace and the snapshot at the run's start, without creating a worktree."""
    run = team.team_id
    user_workspace, steps = await open_workspace(Path(team.workspace)), await history(run)
    origin = team.origin.team_id if team.origin is not None else run
    if steps:
        tips = find_last_commits(steps)
        for thread in tips if origin != run else (MAIN_THREAD,):
            await user_workspace.adopt(run, thread, origin, tips[thread])
    return user_workspace, await user_workspace.snapshot(run)


def find_last_commits(steps: Iterable[Step]) -> Mapping[str, str]:
    """Return the newest commit of each thread, first that of the main one: if it has none, where the others began.

    A step belongs to the thread that its subtask opened, or else its agent.
    """
    threads, tips = dict[SubtaskId | AgentId | None, str](), {MAIN_THREAD: ""}
    for step in steps:
        result = step.result or {}
        if THREAD_KEY in result:
            threads[step.subtask_id] = threads[step.agent_id] = thread = str(result[THREAD_KEY])
            if thread not in (MAIN_THREAD, BASELINE_SUBTASK):  # it began where the main one was
                tips[MAIN_THREAD] = tips[MAIN_THREAD] or str(result.get(BASE_KEY, ""))
        if COMMIT_KEY in result:
            thread = threads.get(step.subtask_id) or threads.get(step.agent_id, MAIN_THREAD)
            tips[thread] = str(result[COMMIT_KEY])
        if INTEGRATED_KEY in result and step.state == "finished":
            tips[MAIN_THREAD] = str(result[INTEGRATED_KEY])
    return tips


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChange:
    """A run's change in the repository, available even without its worktree. `snapshot` is the state of the person's
    `workspace` at the start, `tip` the newest commit."""

    run: str
    workspace: Workspace
    snapshot: TreeSnapshot
    tip: str

    async def diff(self) -> Diff:
        """Return the diff from the snapshot to the tip."""
        return await self.workspace.diff(self.snapshot.commit, self.tip)


async def find_change(team: Team, history: History, at: int | None = None) -> RunChange:
    """Find a run's change, now or at a version, without creating a worktree. What a team has merged counts once the log
    says so."""
    user_workspace, snapshot = await find_snapshot(team, history)
    tip = await user_workspace.tip(team.team_id, MAIN_THREAD)
    if team.kit == TEAM_RUN or at is not None:
        steps = [step for step in await history(team.team_id) if at is None or step.ended_in <= at]
        tip = find_last_commits(steps)[MAIN_THREAD] or snapshot.commit
    return RunChange(run=team.team_id, workspace=user_workspace, snapshot=snapshot, tip=tip)


async def begin_with_change(team: Team, history: History) -> TeamId:
    """Return the id for a new run that begins with another run's change, on that run's base.

    The id is not taken before that run is created. Raise `RefusedError` if there is no change.
    """
    change, run = await find_change(team, history), new_team_id()
    if change.tip == change.snapshot.commit:
        raise make_refusal("no_change", translate("integration.no_change", team=team.team_id))
    await change.workspace.adopt(run, MAIN_THREAD, team.team_id, change.tip)
    return run


async def find_subtask_change(change: RunChange, history: History, subtask: str) -> RunChange | None:
    """Find what the last attempt at a subtask changed in its own worktree; None if it has not started."""
    for facts in (step.result or {} for step in reversed(await history(TeamId(change.run)))):
        thread = str(facts.get(THREAD_KEY, ""))
        if BASE_KEY in facts and thread.partition(".")[0] == subtask:
            base, tip = str(facts[BASE_KEY]), await change.workspace.tip(change.run, thread)
            return replace(change, snapshot=evolve(change.snapshot, commit=base), tip=tip)
    return None


def open_worktrees() -> Worktrees:
    return GitWorktrees(worktrees_folder())


async def list_run_worktrees(run: str) -> list[WorktreeStatus]:
    return [worktree for worktree in await open_worktrees().list() if worktree.run == run]


async def drop_worktrees(run: str) -> None:
    """Delete a run's worktrees with their content. Its commits stay in the repository."""
    for worktree in await list_run_worktrees(run):
        await open_worktrees().clean(worktree.name, discard=True)


@record
class KeptRun:
    """What a repository keeps of a run without a worktree."""

    root: str
    kept: RetainedRun


async def find_kept_runs(roots: Iterable[str], worktrees: Iterable[WorktreeStatus]) -> list[KeptRun]:
    """Find the runs that these repositories keep and that have no worktree. Skip missing repositories."""
    runs_with_worktree = {entry.run for entry in worktrees}
    kept_runs = list[KeptRun]()
    for root in dict.fromkeys(roots):
        try:
            user_workspace = await open_workspace(Path(root))
            kept_runs += [
                KeptRun(root=user_workspace.root, kept=entry)
                for entry in await user_workspace.list_kept_runs()
                if entry.run not in runs_with_worktree
            ]
        except WorkspaceFault:
            continue
    return list({(entry.root, entry.kept.run): entry for entry in kept_runs}.values())


async def find_unapplied_runs(root: Path, worktrees: Iterable[WorktreeStatus]) -> list[KeptRun]:
    """Find unapplied changes for a folder that are in no worktree. This creates nothing outside a repository."""
    if not is_known(root, worktrees_folder(), home_folder() / FOLDERS_HISTORY, home=Path.home()):
        return []
    run_worktrees = [entry for entry in worktrees if not is_scratch(entry.thread)]
    return [entry for entry in await find_kept_runs([str(root)], run_worktrees) if entry.kept.unapplied]


async def delete_kept_run(kept_run: KeptRun, *, discard: bool) -> bool:
    """Delete a kept run. Return False if it has unapplied work and `discard` is not set."""
    user_workspace = await open_workspace(Path(kept_run.root))
    return not isinstance(await user_workspace.forget(kept_run.kept.run, discard=discard), Conflicts)


async def describe_losses(root: Path, run: str) -> tuple[str, ...]:
    """Describe what forgetting a run would lose: unapplied work, and the ability to undo an applied change."""
    files = [text for entry in await list_run_worktrees(run) for text in describe_uncommitted(entry)]
    kept_entries = await (await open_workspace(root)).list_kept_runs(run)
    commits = [translate("change.loses_commit", text=text) for entry in kept_entries for text in entry.unapplied]
    return (
        *commits,
        *files,
        *((translate("change.undo_lost"),) if any(entry.applied for entry in kept_entries) else ()),
    )


def describe_uncommitted(worktree: WorktreeStatus) -> list[str]:
    """Describe the files that exist only in a worktree."""
    return [
        *(translate("left_out.not_committed", path=to_one_line(path)) for path in worktree.dirty),
        *(translate("left_out.not_committable", path=text) for text in describe_left_out(worktree)),
    ]


def describe_left_out(worktree: WorktreeStatus) -> list[str]:
    """Describe the files of a worktree that no commit can contain."""
    return [f"{to_one_line(entry.path)} ({explain_reason(entry.why)})" for entry in worktree.left_out]


async def forget_run(root: Path, run: str) -> None:
    """Delete a run's worktrees and everything that its repository keeps."""
    await drop_worktrees(run)
    await (await open_workspace(root)).forget(run, discard=True)


async def measure_objects(team: Team) -> int:
    """Return the bytes that the repository of a run keeps only for it; 0 if there is no repository any more."""
    root, history = Path(team.workspace), home_folder() / FOLDERS_HISTORY
    if team.kit not in CHANGING_RUNS or not is_known(root, worktrees_folder(), history, home=Path.home()):
        return 0
    try:
        return await (await open_workspace(root)).measure(team.team_id)
    except WorkspaceFault:
        return 0  # the repository is broken, as `doctor` and every other command on it say


async def remove_old_team_runs(runtime: Runtime, keep_days: int, now: int) -> list[TeamId]:
    """Delete the worktrees, commits and logs of team runs that ended more than `keep_days` days before `now` (ms).

    A run goes only if its change is applied, undone, discarded or empty, and if no file exists only in its worktrees.
    With 0 days, all stay. A repository that cannot be read keeps its runs.
    """
    removed, before = list[TeamId](), now - keep_days * MILLIS_PER_DAY
    for info in await runtime.log.streams() if keep_days else ():
        if info.created_at > before or info.owner is not None or not info.head.version:
            continue
        state, team = await runtime.state(TeamId(info.stream)), TeamId(info.stream)
        if state.team.kit != TEAM_RUN or state.tasks:
            continue
        ends = [task.ended_at or now for task in await runtime.ended_tasks(team)]
        if max(ends, default=now) <= before and await _is_settled(state.team):
            await forget_run(Path(state.team.workspace), team)
            await runtime.log.forget(team)
            removed.append(team)
    return removed


async def _is_settled(team: Team) -> bool:
    """Return whether all work of a run is applied or undone, as far as its repository still knows it."""
    try:
        kept_runs = await (await open_workspace(Path(team.workspace))).list_kept_runs()
    except WorkspaceFault:
        return False
    if not any(entry.run == team.team_id and (entry.undone or not entry.unapplied) for entry in kept_runs):
        return False
    return not any(entry.dirty or entry.left_out for entry in await list_run_worktrees(team.team_id))


MAX_STEPS_NAMED: Final = 5


@record
class RewindPoint:
    """An ended step, and the log version right after its commit."""

    step: Step
    version: int


async def list_rewind_points(runtime: Runtime, team: TeamId) -> list[RewindPoint]:
    """Return all steps that a run can rewind to, oldest first."""
    state, points, ended_steps = EMPTY_STATE, list[RewindPoint](), list[Step]()
    async for page in runtime.log.read(team):
        for stored in page:
            event = decode_event(stored)
            if isinstance(event, StepEnded):
                ended_steps.append(apply_end(state.steps[event.step_id], event, stored.version))
            state = reduce(state, event)
            if stored.ends:
                points += [RewindPoint(step=step, version=stored.version) for step in ended_steps]
                ended_steps.clear()
    return points


async def find_rewind_point(runtime: Runtime, team: TeamId, text: str) -> RewindPoint:
    """Find the step that `text` names: a step id, or a number if it is unique. Raise `RefusedError` otherwise."""
    points = await list_rewind_points(runtime, team)
    names = [entry.step.step_id for entry in points]
    waiting = {entry: step.state for entry, step in (await runtime.state(team)).steps.items()}
    matches = _match_steps([*names, *waiting], text.strip())
    if len(matches) > 1:
        raise make_refusal(
            "ambiguous_step",
            translate("lookup.ambiguous", text=text, names=", ".join(matches)),
            translate("lookup.type_whole_id"),
        )
    last_names = ", ".join(reversed(names[-MAX_STEPS_NAMED:]))
    hint = translate("lookup.last_steps" if names else "lookup.no_step_ended", names=last_names)
    if not matches:
        raise make_refusal("unknown_step", translate("lookup.unknown_step", team=team, text=text), hint)
    if matches[0] not in names:
        why = translate("lookup.step_not_ended", step=matches[0], team=team, state=waiting[matches[0]])
        raise make_refusal("open_step", why, hint)
    point = points[names.index(matches[0])]
    if not (await runtime.state(team, point.version)).tasks:
        why = translate("lookup.work_was_over", step=matches[0], team=team)
        raise make_refusal("over_then", why, translate("lookup.name_earlier_step"))
    return point


def _match_steps(names: Sequence[StepId], text: str) -> list[StepId]:
    if text in names:
        return [StepId(text)]
    number = text.removeprefix("#")
    return [step_id for step_id in dict.fromkeys(names) if number.isdecimal() and step_id.rpartition("#")[2] == number]


async def rewind_run(runtime: Runtime, history: History, team: TeamId, point: RewindPoint) -> TeamId:
    """Create a new team from this point, with the files of that moment for a run. It does not start yet."""
    state = await runtime.state(team)
    if state.team.kit in CHANGING_RUNS:
        await find_change(state.team, history)  # refuse missing files before anything is created
    new_team = await runtime.fork(team, point.version)
    if state.team.kit == TEAM_RUN:
        await find_snapshot((await runtime.state(new_team)).team, history)
    elif state.team.kit == CHANGE_RUN:
        await open_run_workspace((await runtime.state(new_team)).team, history)
    if state.team.kit in CHANGING_RUNS:
        await _queue_preparation(runtime, history, new_team)
    return new_team


async def _queue_preparation(runtime: Runtime, history: History, team: TeamId) -> None:
    """Prepare the new worktrees if the old ones were prepared. Those of ended subtasks are not used again."""
    work = Work(type="tool", executor=checkout.NAME, intention="Prepare the worktree.", instruction_content={})
    state = await runtime.state(team)
    prepared = {step.subtask_id: step for step in await history(team) if step.work.executor == checkout.NAME}
    waiting = {step.subtask_id for step in state.steps.values() if step.work.executor == checkout.NAME}
    working = {part.subtask_id for stage in state.stages.values() for part in stage.subtasks if part.state == "running"}
    for name, step in prepared.items():
        if step.state == "finished" and step.task_id in state.tasks and name in {None, *working} - waiting:
            thread = step.thread_id if name is not None else None
            queued = QueueSteps(
                agent_id=step.agent_id, works=(work,), task_id=step.task_id, thread_id=thread, place="next"
            )
            await runtime.ask(team, queued)


async def tell_run(runtime: Runtime, team: TeamId, text: str) -> None:
    """Send a message to the agent before it continues."""
    if text:
        await send_to_run(runtime, TaskReference(team=team), text)
