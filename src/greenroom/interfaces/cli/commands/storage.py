"""`greenroom du`, `gc`, `forget`: how much room the teams take, and giving it back."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

from rich.text import Text

from greenroom.app.conversation.names import JOB
from greenroom.app.jobs import place as copies
from greenroom.app.lookup import find, has_store
from greenroom.core.ports.workspace import WorkspaceFault
from greenroom.core.state.team import Team
from greenroom.interfaces.cli.context import Invocation, command, refused
from greenroom.interfaces.cli.display.output import Column, Fitted, row
from greenroom.interfaces.cli.display.questions import confirm
from greenroom.interfaces.cli.exit_codes import Exit
from greenroom.interfaces.cli.options import DoNotAsk, Id
from greenroom.testing.demo import folder

NAMED: Final = 5  # files and commits that are named; of more, how many there are
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
        await copies.forget(Path(team.workspace), found.team)
    cli.out.show(f"Forgotten: {found.team}, {events} events{_with(work)}.")
    return cli.out.result("forgotten", Exit.DONE, team=found.team, events=events, work=list(work or ()))


async def _work_of(cli: Invocation, team: Team) -> tuple[str, ...] | None:
    """What of a job nobody has any more then; None when nobody can say."""
    if team.kit != JOB:
        return ()
    try:
        return await copies.goes_with(Path(team.workspace), team.team_id)
    except WorkspaceFault as fault:
        cli.progress.note(f"Its files are left alone. {fault}", style="yellow")
        return None


def _with(work: tuple[str, ...] | None) -> str:
    some = [*(work or ())]
    more = f" and {len(some) - NAMED} more" if len(some) > NAMED else ""
    return f" and its work ({'; '.join(some[:NAMED])}{more})" if some else ""


def weight(place: Path) -> int:
    """The bytes of all files under a folder."""
    return sum(file.lstat().st_size for file in place.rglob("*") if file.is_file()) if place.is_dir() else 0


def size(number: int) -> str:
    """Bytes for people."""
    value = float(number)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1000
    return ""
