"""`greenroom doctor`, `du`, `gc`, `forget`, `workspaces`: whether this machine and its home are in order, and what
takes room there."""

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

from greenroom.app.checkup import damage, spoilt_snapshots
from greenroom.app.context import AppContext
from greenroom.app.conversation.names import JOB
from greenroom.app.lookup import find, has_store
from greenroom.app.messages.findings import one_line
from greenroom.app.runs import workspaces
from greenroom.app.runs.workspaces import Trace, copies, in_no_commit, nowhere, traces, uncopied, wipe
from greenroom.app.runtime import Runtime
from greenroom.app.settings.home import worktrees_folder
from greenroom.app.toolset.sandbox import strongest, tier_in
from greenroom.cli.context import Invocation, command, refused
from greenroom.cli.exit_codes import Exit
from greenroom.cli.options import DoNotAsk, Id
from greenroom.cli.render.output import Column, Fitted, row
from greenroom.cli.render.questions import confirm
from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.codec import SCHEMA
from greenroom.core.ports.workspace import Clashes, Standing, WorkspaceFault
from greenroom.core.state.team import Team
from greenroom.testing.demo import folder

COLUMNS: Final = (
    Column(name="team"),
    *(Column(name=name, right=True) for name in ("events", "log")),
    *(Column(name=name, right=True, needs=60) for name in ("archive", "blobs", "files")),
)


async def du(cli: Invocation) -> Exit:
    """Say how much room each team takes."""
    infos = await cli.runtime.log.streams()
    cli.out.expect("teams")
    rows: list[list[Text]] = []
    for info in reversed(infos):
        files = weight(folder(cli.home, info.stream))
        sizes = {"log": info.event_bytes, "archive": info.archive_bytes, "blobs": info.blob_bytes, "files": files}
        rows.append(row(info.stream, f"{info.head.version:,}", *(size(number) for number in sizes.values())))
        cli.out.item("team", {"team": info.stream, "events": info.head.version, **sizes})
    total = weight(cli.home)
    if rows:
        cli.out.show(Fitted(COLUMNS, rows))
    cli.out.show(f"{size(total)} in {cli.home}")
    return cli.out.result("ok", Exit.DONE, bytes=total, home=str(cli.home))


async def gc(cli: Invocation) -> Exit:
    """Give back the room that nothing needs any more."""
    freed = await cli.runtime.log.collect() if has_store(cli.home) else 0
    cli.out.show(f"{size(freed)} given back.")
    return cli.out.result("ok", Exit.DONE, freed=freed)


async def forget(cli: Invocation, name: Id, *, yes: DoNotAsk = False) -> Exit:
    """Delete a team with everything that was logged of it. It cannot be taken back."""
    found = await find(cli.runtime, name)
    if found.task is not None:
        raise refused("whole_teams", "Only whole teams are forgotten.", f"Say {found.team}.")
    events = (await cli.runtime.log.head(found.team)).version
    team = (await cli.runtime.world(found.team)).team
    work = await _work_of(cli, team)
    question = f"Delete team {found.team} with its {events} events{_with(work)}? [y/N] "
    if not yes and not (sys.stdin.isatty() and confirm(question)):
        why = f"Team {found.team} was not deleted."
        raise refused("not_confirmed", why, f"`{command(cli, 'forget', name, '--yes')}` does not ask.")
    await cli.runtime.log.forget(found.team)
    shutil.rmtree(folder(cli.home, found.team), ignore_errors=True)
    if team.kit == JOB and work is not None:
        await workspaces.forget(Path(team.workspace), found.team)
    cli.out.show(f"Forgotten: {found.team}, {events} events{_with(work)}.")
    return cli.out.result("forgotten", Exit.DONE, team=found.team, events=events, work=list(work or ()))


async def _work_of(cli: Invocation, team: Team) -> tuple[str, ...] | None:
    """What of a job nobody has any more then; None when nobody can say."""
    if team.kit != JOB:
        return ()
    try:
        return await workspaces.goes_with(Path(team.workspace), team.team_id)
    except WorkspaceFault as fault:
        cli.progress.note(f"Its files are left alone. {fault}", style="yellow")
        return None


def _with(work: tuple[str, ...] | None) -> str:
    return f" and its work ({_some(list(work))})" if work else ""


def weight(root: Path) -> int:
    """The bytes of all files under a folder."""
    return sum(file.lstat().st_size for file in root.rglob("*") if file.is_file()) if root.is_dir() else 0


def size(number: int) -> str:
    """Bytes for people."""
    value = float(number)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1000
    return ""


SHOWN = 5  # files and commits that are named; of more, how many there are
NO_COPIES = "There are no copies"
ITS_COMMITS = "--discard drops it; its commits stay in the repository"
NOT_ALL = "and what can be in none is deleted for good"
ONLY_COPY = "This is the only copy of its files: --discard deletes them for good"
FOR_GOOD = "--refs --discard deletes it for good"
TAKE = "`greenroom apply RUN` takes it over, `greenroom workspaces clean RUN --refs --discard` deletes it for good"


async def workspaces_list(cli: Invocation) -> Exit:
    """List the copies in which jobs were done, and what is in each."""
    every = await copies().list()
    for copy in every:
        cli.out.show(f"{copy.name}  run {copy.run or '?'} of {copy.root or '?'}: {_contents(copy)}")
    left, said = await _kept_here(cli.means.root, every)
    if not every:
        said = f"{NO_COPIES}. {said}" if said else f"{NO_COPIES}, and nothing is kept here that is not applied."
    if said:
        cli.out.show(said)
    kept = [{"run": one.kept.run, "root": one.root, "unapplied": list(one.kept.unapplied)} for one in left]
    return cli.out.result("listed", Exit.DONE, workspaces=[_data(one) for one in every], uncopied=kept)


async def _kept_here(root: Path, every: Sequence[Standing]) -> tuple[Sequence[Trace], str]:
    """Copies may be gone because somebody has emptied the cache; work that they had is not gone with them."""
    try:
        left = await uncopied(root, every)
    except WorkspaceFault as fault:
        return (), str(fault)
    work = _some([f"run {one.kept.run} ({_commits(one)})" for one in left])
    return left, f"{left[0].root} keeps work without a copy: {work}. {TAKE}." if left else ""


async def workspaces_clean(
    cli: Invocation,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Which; without one, all empty ones.")
    ] = None,
    *,
    discard: Annotated[bool, typer.Option("--discard", help="Also those with work in them.")] = False,
    refs: Annotated[
        bool, typer.Option("--refs", help="Also what git keeps of applied runs: no undo, no blame any more.")
    ] = False,
) -> Exit:
    """Take copies away. One with work in it stays, and it is said what that is, unless --discard."""
    named = tuple(names or ())
    known = await copies().list()
    wanted = [one for one in known if not named or one.name in named or one.run in named]
    kept, gone = list[Standing](), list[str]()
    for one in wanted:
        why = await _why_not(cli, one, discard=discard)
        if why:
            kept.append(one)
            cli.out.show(f"{one.name} stays: {why}.")
        else:
            gone.append(one.name)
    cli.out.show(f"Taken away: {len(gone)}. Left: {len(known) - len(gone)}.")
    wiped = await _wiped(cli, [one.root for one in known], named, discard=discard, refs=refs)
    there = {name for one in known for name in (one.name, one.run)} | set(wiped)
    missing = [name for name in named if name not in there]
    for name in missing:
        cli.out.show(f"There is no workspace {name!r}.")
    code = Exit.USAGE if missing else Exit.FAILED if kept and named else Exit.DONE
    return cli.out.result("cleaned", code, gone=gone, kept=[_data(one) for one in kept], forgotten=wiped)


async def _why_not(cli: Invocation, one: Standing, *, discard: bool) -> str:
    """Take it away, or say why it stays."""
    holder = await cli.runtime.log.holder(TeamId(one.run)) if one.run else None
    if holder is not None:
        return f"its run works, in {holder.owner}"
    done = await copies().clean(one.name, discard=discard)
    if isinstance(done, Clashes):
        how = ONLY_COPY if one.orphan else f"{ITS_COMMITS}, {NOT_ALL}" if one.left_out else ITS_COMMITS
        return f"{_contents(one)}. {how}"
    lost = [*map(one_line, one.dirty if one.orphan else ()), *nowhere(one)]
    if lost:
        cli.out.show(f"{one.name} is gone, and with it the only copy of {_some(lost)}.")
    return ""


async def _wiped(
    cli: Invocation, roots: Iterable[str], names: Sequence[str], *, discard: bool, refs: bool
) -> list[str]:
    """Delete what is kept of runs in which nobody can want anything any more; with --refs also of those that were
    applied. Says what goes, and what stays although it was named."""
    known = {info.stream for info in await cli.runtime.log.streams()}
    gone, here = list[str](), str(cli.means.root)
    for one in await traces([*filter(None, roots), here], await copies().list()):
        run = one.kept.run
        # One that was applied can be undone while it is kept; one without work goes only if it cannot be resumed.
        may_go = refs or not (run in known or one.kept.applied or one.kept.unapplied)
        if (names and run not in names) or not may_go:
            continue
        if await wipe(one, discard=discard and refs):
            gone.append(run)
            lost = [f"{run} cannot be undone any more"] if one.kept.applied else []
            lost += [_commits(one)] if one.kept.unapplied else []
            told = f" ({'; '.join(lost)})" if lost else ""
            cli.out.show(f"Deleted in {one.root}: what was kept of {run}{told}.")
        else:
            cli.out.show(f"{run} stays in {one.root}: {_commits(one)}. {FOR_GOOD}.")
    return gone


def _commits(one: Trace) -> str:
    return _some([f"not applied: {text}" for text in one.kept.unapplied])


def _contents(copy: Standing) -> str:
    """What is in a copy that is nowhere else."""
    if copy.orphan:
        files = _some([*map(one_line, copy.dirty)])
        return copy.orphan.rstrip(".") + (f". Files in it: {files}" if files else "")
    work = [*(f"not applied: {text}" for text in copy.unapplied), *in_no_commit(copy)]
    return _some(work) or "nothing that is not applied"


def _some(work: list[str]) -> str:
    more = f" and {len(work) - SHOWN} more" if len(work) > SHOWN else ""
    return "; ".join(work[:SHOWN]) + more


def _data(one: Standing) -> dict[str, object]:
    told = {name: getattr(one, name) for name in ("name", "run", "root", "folder", "unapplied", "dirty", "orphan")}
    return {**told, "left_out": [{"path": each.path, "why": each.why} for each in one.left_out]}


# --------------------------------------------------------------------------------------------------------------- doctor

SIGNS: Final = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "bad": ("✗", "red")}
WALLS: Final = {
    "bubblewrap": "bubblewrap, a filter of system calls, limits",
    "landlock": "Landlock (weaker than bubblewrap), a filter of system calls, limits",
    "seatbelt": "sandbox-exec, which we have not verified: every command asks",
    "none": "none: every command asks",
}
INSTALL: Final = "On Linux install bubblewrap; docs/howto/sandbox.md says what else can be missing."
NOT_USED: Final = "Nothing is lost: the team is read from its log, and makes a new snapshot when it runs."
COPY: Final = "Copy {home} before anything else, then restore it from a backup or forget the damaged team."
LITTLE: Final = 200_000_000  # bytes of free space below which a warning is due


class Finding(NamedTuple):
    """One thing that was looked at; `todo` says what to do about it."""

    what: str
    state: Literal["ok", "warn", "bad"]
    found: str
    todo: str = ""


async def doctor(
    cli: Invocation,
    *,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Go on with a log that has lost commits (a file was cut or restored).")
    ] = False,
) -> Exit:
    """Check this machine and the log; exit code 3 when something is broken."""
    stored = await _store(cli.home, accept_loss=accept_loss)
    python = f"Python {platform.python_version()} on {platform.system()}"
    sqlite = Finding("sqlite", "ok", f"SQLite {sqlite3.sqlite_version}")
    if sqlite3.sqlite_version_info < (3, 35):
        sqlite = sqlite._replace(state="bad", todo="Use a Python with SQLite 3.35 or newer.")
    git = Finding("git", "warn", "not on the PATH", "Install git: teams that edit code need it.")
    if where := shutil.which("git"):
        git = Finding("git", "ok", where)
    machine = [Finding("python", "ok", python), sqlite, git, _sandbox(cli.means), _home(cli.home)]
    findings = [*machine, *stored, *_settings(cli.means)]
    for each in findings:
        sign, style = SIGNS[each.state]
        cli.out.show(Text(f"{sign} ", style=style).append(f"{each.what:<9} {each.found}", style="default"))
        if each.todo:
            cli.out.show(Text(f"            {each.todo}", style="bold"))
        cli.out.item("finding", each._asdict())
    broken = any(each.state == "bad" for each in findings)
    return cli.out.result("broken" if broken else "ok", Exit.CONFIG if broken else Exit.DONE)


def _sandbox(means: AppContext) -> Finding:
    """What commands of a run from this folder get, and why nothing better."""
    settings = None
    with suppress(GreenroomError):
        settings = means.provisions.loaded.settings.sandbox
    chosen = tier_in(worktrees_folder(), settings, at=Path.cwd())
    why = "; ".join(chosen.why)
    found = WALLS[chosen.tier] + (f" ({why})" if why else "")
    lacks_one = chosen.tier == "none" and strongest(settings.walls if settings else "auto").tier == "none"
    return Finding("sandbox", "ok" if chosen.tier == "bubblewrap" else "warn", found, INSTALL if lacks_one else "")


def _home(home: Path) -> Finding:
    place = next((folder for folder in (home, *home.parents) if folder.exists()), home)
    try:
        free = shutil.disk_usage(place).free
    except OSError as error:
        return Finding("home", "bad", f"{home}: {error.strerror}", "Choose another with --home.")
    found = f"{home}, {size(free)} free"
    if not os.access(place, os.W_OK):
        todo = "Teams in it can be looked at, not run. Make it writable, or choose another with --home."
        return Finding("home", "warn", f"{found}, read-only", todo)
    if free < LITTLE:
        return Finding("home", "warn", found, "Make room: a full disk stops every team.")
    return Finding("home", "ok", found)


def _settings(means: AppContext) -> list[Finding]:
    """Whether the settings can be read, and which model would be asked. No model is asked for it."""
    provisions = means.provisions
    try:
        loaded = provisions.loaded
    except GreenroomError as error:
        return [Finding("settings", "bad", str(error), "Teams can still be looked at.")]
    count = len(loaded.origins)
    settings = Finding("settings", "ok", f"{count} set by you" if count else "none set: the defaults hold")
    try:
        name = provisions.settled("")
        provisions.named(name)
    except GreenroomError as error:
        return [settings, Finding("model", "warn", str(error))]
    return [settings, Finding("model", "ok", name)]


async def _store(home: Path, *, accept_loss: bool) -> list[Finding]:
    """The database: whether it opens, is sound, and who works in it."""
    try:
        runtime = await Runtime.open(home, access="change" if accept_loss else "look", accept_loss=accept_loss)
    except GreenroomError as error:
        return [Finding("database", "bad", str(error), "Nothing in it was changed.")]
    copy = COPY.format(home=home)
    try:
        wrong = [Finding("database", "bad", text, copy) for text in await damage(runtime.log)]
        spoilt = [Finding("snapshot", "warn", text, NOT_USED) for text in await spoilt_snapshots(runtime.log)]
        teams = await runtime.log.streams()
    except GreenroomError as error:
        return [Finding("database", "bad", str(error), copy)]
    finally:
        await runtime.close()
    running = [f"{info.stream} in {info.owner}" for info in teams if info.owner]
    told = f"{len(teams)} teams, {len(running)} running" + (f": {', '.join(running)}" if running else "")
    found = f"sound, schema {SCHEMA}" if has_store(home) else "none yet: the first team that runs makes it"
    return [*(wrong or [Finding("database", "ok", found)]), *spoilt, Finding("teams", "ok", told)]
