"""`greenroom doctor`, `du`, `gc`, `forget`, `workspaces`: the state of this machine and of its home, and disk space."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import typer
from rich.text import Text

from greenroom.app.clock import SystemClock
from greenroom.app.context import AppContext
from greenroom.app.conversation.capability_names import CHANGING_RUNS
from greenroom.app.lookup import has_store, resolve_id
from greenroom.app.messages import to_one_line, translate
from greenroom.app.runs import workspaces
from greenroom.app.runs.workspaces import (
    KeptRun,
    delete_kept_run,
    describe_left_out,
    describe_uncommitted,
    find_kept_runs,
    find_unapplied_runs,
    open_worktrees,
)
from greenroom.app.runtime import Runtime
from greenroom.app.settings.home import worktrees_folder
from greenroom.app.store_check import copy_readable_store, find_damage, find_damaged_snapshots
from greenroom.app.toolset.sandbox import find_folder_sandbox, find_strongest_sandbox
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.options import Id, YesOption
from greenroom.cli.render.output import Column, FittedTable, make_row
from greenroom.cli.render.questions import confirm
from greenroom.core.base.errors import GreenroomError, StoreFault, make_refusal
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.codec import SCHEMA_VERSION
from greenroom.core.ports.log import StreamInfo
from greenroom.core.ports.workspace import Conflicts, WorkspaceFault, WorktreeStatus
from greenroom.core.state.team import Team
from greenroom.testing.demo import demo_folder

SIZE_COLUMNS: Final = (
    Column(name="team"),
    *(Column(name=name, right=True) for name in ("events", "log")),
    *(Column(name=name, right=True, min_terminal_width=60) for name in ("archive", "blobs", "files")),
    *(Column(name=name, right=True, min_terminal_width=80) for name in ("worktrees", "commits")),
)


async def du(cli: Invocation) -> Exit:
    """Show the disk space that runs take.

    It counts logs, worktrees, and the commits that a repository keeps for a run. Free it with `greenroom gc`,
    `greenroom forget` or `greenroom workspaces clean`.

    Examples:
      greenroom du
      greenroom du --output-format json

    Exit codes: 0; 2; 3.
    """
    infos, worktrees = await cli.runtime.log.streams(), await open_worktrees().measure()
    cli.out.expect("teams")
    rows: list[list[Text]] = []
    for info in reversed(infos):
        files = folder_bytes(demo_folder(cli.home, info.stream))
        sizes = {"log": info.event_bytes, "archive": info.archive_bytes, "blobs": info.blob_bytes, "files": files}
        sizes["worktrees"] = worktrees.get(info.stream, 0)
        sizes["commits"] = await _measure_commits(cli, info)
        rows.append(
            make_row(info.stream, f"{info.head.version:,}", *(format_bytes(number) for number in sizes.values()))
        )
        cli.out.item("team", {"team": info.stream, "events": info.head.version, **sizes})
    total = folder_bytes(cli.home)
    if rows:
        cli.out.show(FittedTable(SIZE_COLUMNS, rows))
    cli.out.show(translate("home.disk_space", size=format_bytes(total), home=cli.home))
    copies = sum(worktrees.values())
    if copies:
        cli.out.show(translate("home.disk_space", size=format_bytes(copies), home=worktrees_folder()))
    return cli.out.result("ok", Exit.DONE, bytes=total, home=str(cli.home), worktrees=copies)


async def _measure_commits(cli: Invocation, info: StreamInfo) -> int:
    """Return the bytes that the repository of a run keeps for it."""
    try:
        team = (await cli.runtime.state(TeamId(info.stream))).team if info.head.version else None
    except StoreFault as error:  # a damaged log must not hide the others
        cli.progress.note(str(error), style="red")
        return 0
    return 0 if team is None else await workspaces.measure_objects(team)


async def gc(cli: Invocation) -> Exit:
    """Free disk space that is no longer needed.

    No run is deleted, and nothing of it is lost.

    Examples:
      greenroom gc
      greenroom gc --output-format json

    Exit codes: 0; 2; 3.
    """
    freed = await cli.runtime.log.collect() if has_store(cli.home) else 0
    cli.out.show(translate("home.freed", size=format_bytes(freed)))
    return cli.out.result("ok", Exit.DONE, freed=freed)


async def forget(cli: Invocation, name: Id, *, yes: YesOption = False) -> Exit:
    """Delete a run and its log.

    This cannot be undone. You are asked first, unless --yes.

    Examples:
      greenroom forget last
      greenroom forget last --yes

    Exit codes: 0; 2; 3.
    """
    reference = await resolve_id(cli.runtime, name)
    if reference.task is not None:
        raise make_refusal(
            "whole_teams", translate("home.only_whole_teams"), translate("control.use", team=reference.team)
        )
    events = (await cli.runtime.log.head(reference.team)).version
    team = (await cli.runtime.state(reference.team)).team
    work = await _find_work(cli, team)
    question = translate("home.confirm_delete_team", team=reference.team, events=events, work=_describe_work(work))
    if not yes and not (sys.stdin.isatty() and confirm(question)):
        why = translate("home.team_not_deleted", team=reference.team)
        raise make_refusal(
            "not_confirmed",
            why,
            translate("home.delete_without_asking", command=render_command(cli, "forget", reference.team, "--yes")),
        )
    await cli.runtime.log.forget(reference.team)
    shutil.rmtree(demo_folder(cli.home, reference.team), ignore_errors=True)
    if team.kit in CHANGING_RUNS and work is not None:
        await workspaces.forget_run(Path(team.workspace), reference.team)
    cli.out.show(translate("home.deleted", team=reference.team, events=events, work=_describe_work(work)))
    return cli.out.result("forgotten", Exit.DONE, team=reference.team, events=events, work=list(work or ()))


async def _find_work(cli: Invocation, team: Team) -> tuple[str, ...] | None:
    """Return the work of a run that would be lost; None if that is unknown."""
    if team.kit not in CHANGING_RUNS:
        return ()
    try:
        return await workspaces.describe_losses(Path(team.workspace), team.team_id)
    except WorkspaceFault as fault:
        cli.progress.note(translate("home.files_not_deleted", fault=fault), style="yellow")
        return None


def _describe_work(work: tuple[str, ...] | None) -> str:
    return translate("home.and_work", work=_join_some(list(work))) if work else ""


def folder_bytes(root: Path) -> int:
    """Return the total size of all files below a folder."""
    return sum(file.lstat().st_size for file in root.rglob("*") if file.is_file()) if root.is_dir() else 0


def format_bytes(number: int) -> str:
    """Format a number of bytes."""
    value = float(number)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1000
    return ""


MAX_NAMES_SHOWN = 5  # files and commits that are listed; of more, only their number


async def workspaces_list(cli: Invocation) -> Exit:
    """List the worktrees of runs.

    Each line says which work in it is not applied yet.

    Examples:
      greenroom workspaces list
      greenroom workspaces list --output-format json

    Exit codes: 0; 2; 3.
    """
    worktrees = await open_worktrees().list()
    for worktree in worktrees:
        known = {"name": worktree.name, "run": worktree.run or "?", "root": worktree.root or "?"}
        cli.out.show(translate("home.worktree", **known), *(f"  {line}" for line in _list_work(worktree)))
    kept_runs, kept_lines = await _find_kept_here(cli, worktrees)
    if not worktrees:
        cli.out.show(translate("home.no_worktrees" if kept_lines else "home.no_unapplied_work"))
    cli.out.show(*kept_lines)
    kept_fields = [
        {"run": entry.kept.run, "root": entry.root, "unapplied": list(entry.kept.unapplied)} for entry in kept_runs
    ]
    return cli.out.result(
        "listed", Exit.DONE, workspaces=[_worktree_fields(entry) for entry in worktrees], uncopied=kept_fields
    )


async def _find_kept_here(
    cli: Invocation, worktrees: Sequence[WorktreeStatus]
) -> tuple[Sequence[KeptRun], Sequence[str]]:
    """Find unapplied work whose worktree is gone, for instance because the cache was emptied."""
    try:
        kept_runs = await find_unapplied_runs(cli.app.root, worktrees)
    except WorkspaceFault as fault:
        return (), (str(fault),)
    lines = list[str]()
    for kept_run in kept_runs[:MAX_NAMES_SHOWN]:
        run = kept_run.kept.run
        lines.append(translate("home.work_without_worktree", run=run, root=kept_run.root))
        lines += [f"  {line}" for line in _cut(_render_unapplied(kept_run))]
        commands = {"apply": render_command(cli, "apply", run)}
        commands["delete"] = render_command(cli, "workspaces", "clean", run, "--refs", "--discard")
        lines.append(translate("home.apply_or_delete", **commands))
    hidden = len(kept_runs) - MAX_NAMES_SHOWN
    return kept_runs, [*lines, *([translate("conversation.more", count=hidden)] if hidden > 0 else [])]


async def workspaces_clean(
    cli: Invocation,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Worktrees to remove. [default: all without work]")
    ] = None,
    *,
    discard: Annotated[bool, typer.Option("--discard", help="Also remove worktrees with unapplied work.")] = False,
    refs: Annotated[bool, typer.Option("--refs", help="Also delete refs of applied runs: no undo or blame.")] = False,
) -> Exit:
    """Remove worktrees that hold no unapplied work.

    Worktrees with unapplied work are kept and listed, unless --discard. Without a name, finished team runs older than
    `[team] keep_days` go too, with their logs, if their change is applied, undone or empty.

    Examples:
      greenroom workspaces clean
      greenroom workspaces clean --discard

    Exit codes: 0; 1 a worktree that you named is kept; 2; 3.
    """
    named = tuple(names or ())
    worktrees = await open_worktrees().list()
    wanted = [worktree for worktree in worktrees if not named or worktree.name in named or worktree.run in named]
    kept, cleaned = list[WorktreeStatus](), list[str]()
    for worktree in wanted:
        why = await _clean_worktree(cli, worktree, discard=discard)
        if why:
            kept.append(worktree)
            cli.out.show(translate("home.kept", name=worktree.name, why=why))
        else:
            cleaned.append(worktree.name)
    cli.out.show(translate("home.removed", count=len(cleaned), left=len(worktrees) - len(cleaned)))
    deleted_runs = await _delete_kept_runs(
        cli, [worktree.root for worktree in worktrees], named, discard=discard, refs=refs
    )
    known_names = {name for worktree in worktrees for name in (worktree.name, worktree.run)} | set(deleted_runs)
    missing = [name for name in named if name not in known_names]
    for name in missing:
        cli.out.show(translate("home.no_workspace", name=name))
    deleted_runs += [] if named else await remove_old_runs(cli)
    code = Exit.USAGE if missing else Exit.FAILED if kept and named else Exit.DONE
    return cli.out.result(
        "cleaned", code, gone=cleaned, kept=[_worktree_fields(worktree) for worktree in kept], forgotten=deleted_runs
    )


async def remove_old_runs(cli: Invocation) -> list[str]:
    """Remove the team runs that are older than `[team] keep_days`, and print them."""
    keep_days = cli.app.model_session.loaded_settings.settings.team.keep_days
    removed = await workspaces.remove_old_team_runs(cli.runtime, keep_days, SystemClock().now())
    for team in removed:
        cli.out.show(translate("home.old_run_deleted", team=team, days=keep_days))
    return [*removed]


async def _clean_worktree(cli: Invocation, worktree: WorktreeStatus, *, discard: bool) -> str:
    """Remove a worktree, or return why it is kept."""
    is_known = TeamId(worktree.run) in {info.stream for info in await cli.runtime.log.streams()}
    if worktree.run and not is_known and not discard:
        return translate("home.other_home", run=worktree.run)
    holder = await cli.runtime.log.holder(TeamId(worktree.run)) if is_known else None
    if holder is not None:
        return translate("home.run_active", owner=holder.owner)
    done = await open_worktrees().clean(worktree.name, discard=discard)
    if isinstance(done, Conflicts):
        key = "only_copy" if worktree.orphan else "discard_loses" if worktree.left_out else "discard"
        return translate(f"home.{key}", work=_join_some(_list_work(worktree)))
    lost = [*map(to_one_line, worktree.dirty if worktree.orphan else ()), *describe_left_out(worktree)]
    if lost:
        cli.out.show(translate("home.only_copy_removed", name=worktree.name, lost=_join_some(lost)))
    return ""


async def _delete_kept_runs(
    cli: Invocation, roots: Iterable[str], names: Sequence[str], *, discard: bool, refs: bool
) -> list[str]:
    """Delete the kept commits of runs that can no longer be resumed, undone or applied; with --refs of applied runs
    too.

    Print what is deleted, and what is kept although it was named.
    """
    logged_runs = {info.stream for info in await cli.runtime.log.streams()}
    deleted, here = list[str](), str(cli.app.root)
    for kept_run in await find_kept_runs([*filter(None, roots), here], await open_worktrees().list()):
        run = kept_run.kept.run
        # An applied run can be undone while it is kept. A run without work is deleted only if it cannot be resumed.
        may_go = refs or not (run in logged_runs or kept_run.kept.applied or kept_run.kept.unapplied)
        if (names and run not in names) or not may_go:
            continue
        if await delete_kept_run(kept_run, discard=discard and refs):
            deleted.append(run)
            lost = [translate("home.undo_no_longer_possible", run=run)] if kept_run.kept.applied else []
            lost += [_join_some(_render_unapplied(kept_run))] if kept_run.kept.unapplied else []
            key = "home.commits_deleted_with" if lost else "home.commits_deleted"
            cli.out.show(translate(key, root=kept_run.root, run=run, lost="; ".join(lost)))
        else:
            work = _join_some(_render_unapplied(kept_run))
            cli.out.show(translate("home.run_kept", run=run, root=kept_run.root, work=work))
    return deleted


def _render_unapplied(kept_run: KeptRun) -> list[str]:
    return [translate("home.not_applied", work=text) for text in kept_run.kept.unapplied]


def _list_work(worktree: WorktreeStatus) -> list[str]:
    """List the work in a worktree that is nowhere else; of much only the first lines."""
    if worktree.orphan:
        files = _join_some([*map(to_one_line, worktree.dirty)])
        return [worktree.orphan.rstrip("."), *([translate("home.files_in_it", files=files)] if files else [])]
    work = [*(translate("home.not_applied", work=text) for text in worktree.unapplied), *describe_uncommitted(worktree)]
    return _cut(work) or [translate("home.no_work")]


def _cut(work: list[str]) -> list[str]:
    hidden = len(work) - MAX_NAMES_SHOWN
    return [*work[:MAX_NAMES_SHOWN], *([translate("conversation.more", count=hidden)] if hidden > 0 else [])]


def _join_some(work: list[str]) -> str:
    return "; ".join(_cut(work))


def _worktree_fields(worktree: WorktreeStatus) -> dict[str, object]:
    fields = {
        name: getattr(worktree, name) for name in ("name", "run", "root", "folder", "unapplied", "dirty", "orphan")
    }
    return {**fields, "left_out": [{"path": entry.path, "why": entry.why} for entry in worktree.left_out]}


STATE_SIGNS: Final = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "bad": ("✗", "red")}
MIN_FREE_BYTES: Final = 200_000_000  # bytes of free space below which doctor warns


class DoctorFinding(NamedTuple):
    """The result of one check; `todo` says how to fix it."""

    what: str
    state: Literal["ok", "warn", "bad"]
    found: str
    todo: str = ""


async def doctor(
    cli: Invocation,
    *,
    accept_loss: Annotated[bool, typer.Option("--accept-loss", help="Accept a log that lost commits.")] = False,
    copy_to: Annotated[
        Path | None,
        typer.Option("--copy-to", metavar="FOLDER", help="Copy what is readable of a damaged log."),
    ] = None,
) -> Exit:
    """Check this machine and the log for problems.

    Each line says what was found and, if something is wrong, what to do.

    Examples:
      greenroom doctor
      greenroom doctor --output-format json

    Exit codes: 0; 2; 3 something is broken, or was not copied.
    """
    if copy_to is not None:
        return await _copy_readable(cli, copy_to)
    store_findings = await _check_store(cli.home, accept_loss=accept_loss)
    python = f"Python {platform.python_version()}, {platform.system()}"
    sqlite = DoctorFinding("sqlite", "ok", f"SQLite {sqlite3.sqlite_version}")
    if sqlite3.sqlite_version_info < (3, 35):
        sqlite = sqlite._replace(state="bad", todo=translate("home.use_newer_sqlite"))
    git = DoctorFinding("git", "warn", translate("home.git_missing"), translate("home.install_git"))
    if where := shutil.which("git"):
        git = DoctorFinding("git", "ok", where)
    machine = [DoctorFinding("python", "ok", python), sqlite, git, _check_sandbox(cli.app), _check_home(cli.home)]
    findings = [*machine, *store_findings, *await _check_settings(cli.app)]
    for finding in findings:
        sign, style = STATE_SIGNS[finding.state]
        cli.out.show(Text(f"{sign} ", style=style).append(f"{finding.what:<9} {finding.found}", style="default"))
        if finding.todo:
            cli.out.show(Text(f"            {finding.todo}", style="bold"))
        cli.out.item("finding", finding._asdict())
    broken = any(finding.state == "bad" for finding in findings)
    return cli.out.result("broken" if broken else "ok", Exit.CONFIG if broken else Exit.DONE)


async def _copy_readable(cli: Invocation, folder: Path) -> Exit:
    """Copy what is readable of the log to a new folder, and tell what is missing."""
    copied, is_whole = await copy_readable_store(cli.home, folder)
    partial_runs = {run: numbers for run, numbers in copied.items() if numbers[0] < max(numbers[1], 1)}
    for run, (events, count) in partial_runs.items():
        cli.out.show(translate("home.copied_part", run=run, copied=events, count=count))
        cli.out.item("partial", {"run": run, "copied": events, "events": count})
    whole = len(copied) - len(partial_runs)
    cli.out.show(translate("home.copied", whole=whole, count=len(copied), folder=folder))
    if not is_whole:
        cli.out.show(translate("home.copied_unknown"))
    is_whole = is_whole and not partial_runs
    status, code = ("ok", Exit.DONE) if is_whole else ("partial", Exit.CONFIG)
    return cli.out.result(status, code, runs=len(copied), whole_runs=whole)


def _check_sandbox(app: AppContext) -> DoctorFinding:
    """Check which sandbox commands get in this folder, and why not a stronger one."""
    settings = None
    with suppress(GreenroomError):
        settings = app.model_session.loaded_settings.settings.sandbox
    chosen = find_folder_sandbox(worktrees_folder(), settings, at=Path.cwd())
    why = "; ".join(chosen.why)
    description = translate(f"home.sandbox_{chosen.tier}") + (f" ({why})" if why else "")
    has_no_sandbox = (
        chosen.tier == "none" and find_strongest_sandbox(settings.walls if settings else "auto").tier == "none"
    )
    return DoctorFinding(
        "sandbox",
        "ok" if chosen.tier == "bubblewrap" else "warn",
        description,
        translate("home.install_sandbox") if has_no_sandbox else "",
    )


def _check_home(home: Path) -> DoctorFinding:
    existing_folder = next((folder for folder in (home, *home.parents) if folder.exists()), home)
    try:
        free = shutil.disk_usage(existing_folder).free
    except OSError as error:
        return DoctorFinding("home", "bad", f"{home}: {error.strerror}", translate("home.choose_other_home"))
    description = translate("home.free", home=home, size=format_bytes(free))
    if not os.access(existing_folder, os.W_OK):
        todo = translate("home.home_read_only")
        return DoctorFinding("home", "warn", translate("home.read_only", home=description), todo)
    if free < MIN_FREE_BYTES:
        return DoctorFinding("home", "warn", description, translate("home.free_disk_space"))
    return DoctorFinding("home", "ok", description)


async def _check_settings(app: AppContext) -> list[DoctorFinding]:
    """Check whether the settings can be read, and which model is the default. No model is called."""
    provisions = app.model_session
    try:
        loaded = provisions.loaded_settings
    except GreenroomError as error:
        return [DoctorFinding("settings", "bad", str(error), translate("home.fix_settings_file"))]
    count = len(loaded.origins)
    settings = DoctorFinding(
        "settings", "ok", translate("home.settings_set_count" if count else "home.settings_none", count=count)
    )
    try:
        await provisions.find_local_servers()
        name = provisions.resolve_alias("")
        provisions.get_model(name)
    except GreenroomError as error:
        return [settings, DoctorFinding("model", "warn", str(error))]
    return [settings, DoctorFinding("model", "ok", name)]


async def _check_store(home: Path, *, accept_loss: bool) -> list[DoctorFinding]:
    """Check whether the database opens and is intact, and which processes use it."""
    try:
        runtime = await Runtime.open(home, access="change" if accept_loss else "look", accept_loss=accept_loss)
    except GreenroomError as error:
        return [DoctorFinding("database", "bad", str(error), translate("home.database_unchanged"))]
    copy = translate("home.backup", home=home)
    try:
        damage_findings = [DoctorFinding("database", "bad", text, copy) for text in await find_damage(runtime.log)]
        spoilt = [
            DoctorFinding("snapshot", "warn", text, translate("home.snapshot"))
            for text in await find_damaged_snapshots(runtime.log)
        ]
        teams = await runtime.log.streams()
    except GreenroomError as error:
        return [DoctorFinding("database", "bad", str(error), copy)]
    finally:
        await runtime.close()
    running = [translate("home.team_in", team=info.stream, owner=info.owner) for info in teams if info.owner]
    key = "home.teams_running" if running else "home.teams"
    team_text = translate(key, count=len(teams), running=", ".join(running))
    key = "home.database_intact" if has_store(home) else "home.database_none"
    description = translate(key, schema=SCHEMA_VERSION)
    return [
        *(damage_findings or [DoctorFinding("database", "ok", description)]),
        *spoilt,
        DoctorFinding("teams", "ok", team_text),
    ]
