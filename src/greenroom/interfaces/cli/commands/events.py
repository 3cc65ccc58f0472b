"""`greenroom events` and `replay`: what happened, event by event, as a story, or as it was at one version."""

from __future__ import annotations

import time
from typing import Annotated, Final

import typer
from rich.text import Text

from greenroom.app.lookup import Found, find
from greenroom.core.base.ids import TeamId
from greenroom.interfaces.cli.context import Invocation, command, refused
from greenroom.interfaces.cli.display.output import event_fields
from greenroom.interfaces.cli.display.portrait import fields, portray, rendered
from greenroom.interfaces.cli.display.progress import told_text
from greenroom.interfaces.cli.display.team import Line, Teller, seconds
from greenroom.interfaces.cli.exit_codes import Exit
from greenroom.interfaces.cli.options import Id

ONLY_A_VIEW: Final = "A view of the log: nothing is run again and no model is asked."


async def events(
    cli: Invocation,
    name: Id,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what happens, until no task is open.")
    ] = False,
    after: Annotated[int, typer.Option("--after", min=0, metavar="N", help="Only what came after version N.")] = 0,
) -> Exit:
    """Print what happened in a team, one line per event."""
    found = await find(cli.runtime, name)
    team, head = found.team, (await cli.runtime.log.head(found.team)).version
    cli.out.begin(team=team, command="events", head=head)
    cli.out.expect("events")
    teller = Teller()
    follow = follow and await _goes_on(cli, team)
    _note_whole(cli, found)
    async for told in cli.runtime.events(team, follow=follow):
        line = teller.tell(told)
        if told.version > after and cli.out.text:
            cli.out.show(_event_text(teller, line))
        elif told.version > after:
            event = event_fields(team, told)
            cli.out.item(str(event["type"]), event, many="events")
        if follow and told.version >= head and not teller.world.tasks:
            break
    return cli.out.result("ok", Exit.DONE, team=team, version=teller.version)


async def _goes_on(cli: Invocation, team: TeamId) -> bool:
    """Whether there is anything to wait for; says so when no process works on it just now."""
    if not (await cli.runtime.world(team)).tasks:
        return False
    if await cli.runtime.log.holder(team) is None:
        cli.progress.note(f"Nobody runs it just now; to let it go on: {command(cli, 'resume', team)}", style="yellow")
    return True


def _note_whole(cli: Invocation, found: Found) -> None:
    if found.task is not None:
        cli.progress.note(f"The log is one of the whole team: all of {found.team} is told.", style="dim")


def _event_text(teller: Teller, line: Line) -> Text:
    clock = time.strftime("%H:%M:%S", time.localtime(line.at / 1000))
    text = Text(f"{line.version:>6}  {clock}.{line.at % 1000:03}  ", style="dim")
    text.append(f"{line.type:<18} ", style="not dim" if line.said.story else "")
    return told_text(text, teller, line, line.said.text, dim=not line.said.story)


async def replay(
    cli: Invocation,
    name: Id,
    *,
    at: Annotated[int | None, typer.Option("--at", min=1, metavar="N", help="Show what was true at version N.")] = None,
) -> Exit:
    """Tell a run again as a story, or show what was true at one version of it."""
    found = await find(cli.runtime, name)
    head = (await cli.runtime.log.head(found.team)).version
    if at is not None and at > head:
        raise refused("no_such_version", f"Team {found.team!r} has versions 1 to {head}, not {at}.")
    cli.out.begin(team=found.team, command="replay", at=at or head)
    cli.progress.note(ONLY_A_VIEW, style="dim")
    if at is None:
        _note_whole(cli, found)
        return await _story(cli, found.team)
    portrait = await portray(cli.runtime, found.team, at)
    cli.out.show(*rendered(portrait, f"as it was at version {at} of {head}", found.task))
    cli.progress.note(f"\nBranch off from here: {command(cli, 'fork', found.team, '--at', str(at))}")
    return cli.out.result("ok", Exit.DONE, **fields(portrait, None, found.task))


async def _story(cli: Invocation, team: TeamId) -> Exit:
    teller = Teller()
    async for told in cli.runtime.events(team):
        line = teller.tell(told)
        cli.out.stream(team, told)
        if line.said.story or cli.setup.verbose:
            when = Text(f"{line.version:>5}  {'+' + seconds(line.at - teller.began_at):>7}  ", style="dim")
            cli.out.show(told_text(when, teller, line))
    total = teller.total()
    cli.progress.note(f"\nWhat was true at any version: {command(cli, 'replay', team, '--at', 'VERSION')}")
    counts = {"steps": total.steps, "tokens": total.tokens, "messages": teller.messages}
    return cli.out.result("ok", Exit.DONE, team=team, version=teller.version, **counts)
