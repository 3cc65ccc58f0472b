"""`greenroom events`: what happened, event by event, and with `--follow` what happens."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated

import typer
from rich.text import Text

from greenroom.app.lookup import find
from greenroom.app.runtime import Told
from greenroom.core.base.ids import TeamId
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.ids import Id
from greenroom.interfaces.cli.progress import MARKS
from greenroom.interfaces.cli.rows import colour
from greenroom.interfaces.cli.schema import event_fields
from greenroom.interfaces.cli.session import Door, run
from greenroom.interfaces.cli.telling import Line, Teller


def events(
    context: typer.Context,
    name: Id,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what happens, until no task is open.")
    ] = False,
    after: Annotated[int, typer.Option("--after", min=0, metavar="N", help="Only what came after version N.")] = 0,
) -> int:
    """Print what happened in a team, one line per event."""
    return run(context, partial(_events, name=name, follow=follow, after=after))


async def _events(door: Door, *, name: str, follow: bool, after: int) -> Exit:
    team = (await find(door.runtime, name)).team
    head = (await door.runtime.log.head(team)).version
    door.out.begin(team=team, command="events", head=head)
    teller = Teller()
    over = follow and not (await door.runtime.world(team)).tasks
    async for told in door.runtime.events(team, follow=follow and not over):
        line = teller.tell(told)
        if told.version > after:
            _print(door, team, teller, told, line)
        if follow and told.version >= head and not teller.world.tasks:
            break
    return door.out.result("ok", Exit.DONE, team=team, version=teller.version)


def _print(door: Door, team: TeamId, teller: Teller, told: Told, line: Line) -> None:
    if door.out.text:
        door.out.show(_line(teller, line))
    else:
        fields = event_fields(team, told)
        door.out.item(str(fields["type"]), fields, many="events")


def _line(teller: Teller, line: Line) -> Text:
    said = line.said
    clock = time.strftime("%H:%M:%S", time.localtime(line.at / 1000))
    text = Text(f"{line.version:>6}  {clock}.{line.at % 1000:03}  ", style="dim")
    text.append(f"{line.type:<18}", style="not dim" if said.story else "")
    text.append(f" {said.who:<6} ", style=f"not dim {colour(teller.world, said.who)}".strip())
    text.append(f"{said.mark or ' '} ", style=f"not dim {MARKS.get(said.mark, '')}".strip())
    text.append(said.text, style="not dim" if said.story else "")
    return text
