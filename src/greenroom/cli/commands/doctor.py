"""`greenroom doctor`: is everything as it must be, and if not, what to do."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Literal

import typer
from rich.text import Text

from greenroom.app.checkup import damage, spoilt_snapshots
from greenroom.app.context import AppContext
from greenroom.app.lookup import has_store
from greenroom.app.runtime import Runtime
from greenroom.app.settings.home import worktrees_folder
from greenroom.app.toolset.sandbox import strongest, tier_in
from greenroom.cli.commands.storage import size
from greenroom.cli.context import Invocation
from greenroom.cli.exit_codes import Exit
from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.records import record, whole
from greenroom.core.ports.codec import SCHEMA
from greenroom.core.ports.sandbox import Tier

SIGNS: Final = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "bad": ("✗", "red")}
WALLS: Final = {
    "bubblewrap": "bubblewrap, a filter of system calls, limits",
    "landlock": "Landlock (weaker than bubblewrap), a filter of system calls, limits",
    "seatbelt": "sandbox-exec, which we have not verified: every command asks",
    "none": "none: every command asks",
}
STATES: Final[Mapping[Tier, Literal["ok", "warn"]]] = {
    "bubblewrap": "ok",
    "landlock": "warn",
    "seatbelt": "warn",
    "none": "warn",
}
TODO: Final = "On Linux install bubblewrap; docs/howto-sandbox.md says what else can be missing."
NOT_USED: Final = "Nothing is lost: the team is read from its log, and makes a new snapshot when it runs."
COPY: Final = "Copy {home} before anything else, then restore it from a backup or forget the damaged team."
LITTLE: Final = 200_000_000  # bytes of free space below which a warning is due


@record
class Finding:
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
    old, where = sqlite3.sqlite_version_info < (3, 35), shutil.which("git")
    machine = [
        Finding(what="python", state="ok", found=python),
        Finding(
            what="sqlite",
            state="bad" if old else "ok",
            found=f"SQLite {sqlite3.sqlite_version}",
            todo="Use a Python with SQLite 3.35 or newer." if old else "",
        ),
        Finding(
            what="git",
            state="ok" if where else "warn",
            found=where or "not on the PATH",
            todo="" if where else "Install git: teams that edit code need it.",
        ),
        _sandbox(cli.means),
        _home(cli.home),
    ]
    findings = [*machine, *stored, *_settings(cli.means)]
    for each in findings:
        sign, style = SIGNS[each.state]
        cli.out.show(Text(f"{sign} ", style=style).append(f"{each.what:<9} {each.found}", style="default"))
        if each.todo:
            cli.out.show(Text(f"            {each.todo}", style="bold"))
        cli.out.item("finding", whole(each))
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
    return Finding(what="sandbox", state=STATES[chosen.tier], found=found, todo=TODO if lacks_one else "")


def _home(home: Path) -> Finding:
    place = next((one for one in (home, *home.parents) if one.exists()), home)
    try:
        free = shutil.disk_usage(place).free
    except OSError as error:
        return Finding(what="home", state="bad", found=f"{home}: {error.strerror}", todo="Choose another with --home.")
    found = f"{home}, {size(free)} free"
    if not os.access(place, os.W_OK):
        todo = "Teams in it can be looked at, not run. Make it writable, or choose another with --home."
        return Finding(what="home", state="warn", found=f"{found}, read-only", todo=todo)
    if free < LITTLE:
        return Finding(what="home", state="warn", found=found, todo="Make room: a full disk stops every team.")
    return Finding(what="home", state="ok", found=found)


def _settings(means: AppContext) -> list[Finding]:
    """Whether the settings can be read, and which model would be asked. No model is asked for it."""
    provisions = means.provisions
    try:
        loaded = provisions.loaded
    except GreenroomError as error:
        return [Finding(what="settings", state="bad", found=str(error), todo="Teams can still be looked at.")]
    set_ = len(loaded.origins)
    found = [
        Finding(what="settings", state="ok", found=f"{set_} set by you" if set_ else "none set: the defaults hold")
    ]
    try:
        name = provisions.settled("")
        provisions.named(name)
    except GreenroomError as error:
        return [*found, Finding(what="model", state="warn", found=str(error))]
    return [*found, Finding(what="model", state="ok", found=name)]


async def _store(home: Path, *, accept_loss: bool) -> list[Finding]:
    """The database: whether it opens, is sound, and who works in it."""
    try:
        runtime = await Runtime.open(home, access="change" if accept_loss else "look", accept_loss=accept_loss)
    except GreenroomError as error:
        return [Finding(what="database", state="bad", found=str(error), todo="Nothing in it was changed.")]
    try:
        wrong = [
            Finding(what="database", state="bad", found=one, todo=COPY.format(home=home))
            for one in await damage(runtime.log)
        ]
        spoilt = [
            Finding(what="snapshot", state="warn", found=one, todo=NOT_USED)
            for one in await spoilt_snapshots(runtime.log)
        ]
        teams = await runtime.log.streams()
    except GreenroomError as error:
        return [Finding(what="database", state="bad", found=str(error), todo=COPY.format(home=home))]
    finally:
        await runtime.close()
    running = [f"{info.stream} in {info.owner}" for info in teams if info.owner]
    told = f"{len(teams)} teams, {len(running)} running" + (f": {', '.join(running)}" if running else "")
    found = f"sound, schema {SCHEMA}" if has_store(home) else "none yet: the first team that runs makes it"
    sound = [Finding(what="database", state="ok", found=found)]
    return [*(wrong or sound), *spoilt, Finding(what="teams", state="ok", found=told)]
