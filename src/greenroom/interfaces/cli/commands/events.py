"""`greenroom events`: what happened, event by event, and with `--follow` what happens."""

from __future__ import annotations

import time

from rich.text import Text

from greenroom.app.lookup import find
from greenroom.app.runtime import Told
from greenroom.core.base.ids import TeamId
from greenroom.interfaces.cli.asked.orders import Events
from greenroom.interfaces.cli.display.progress import MARKS
from greenroom.interfaces.cli.display.rows import colour
from greenroom.interfaces.cli.display.schema import event_fields
from greenroom.interfaces.cli.display.telling import Line, Teller
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door


async def events(door: Door, order: Events) -> Exit:
    """Print them, and with `follow` those that come."""
    found = await find(door.runtime, order.name)
    team, head = found.team, (await door.runtime.log.head(found.team)).version
    door.out.begin(team=team, command="events", head=head)
    door.out.expect("events")
    teller = Teller()
    follow = order.follow and await _goes_on(door, team)
    if found.task is not None:
        door.progress.note(f"The log is one of the whole team: all of {team} is told.", style="dim")
    async for told in door.runtime.events(team, follow=follow):
        line = teller.tell(told)
        if told.version > order.after:
            _print(door, team, teller, told, line)
        if follow and told.version >= head and not teller.world.tasks:
            break
    return door.out.result("ok", Exit.DONE, team=team, version=teller.version)


async def _goes_on(door: Door, team: TeamId) -> bool:
    """Whether there is anything to wait for; says so when nobody works on it just now."""
    if not (await door.runtime.world(team)).tasks:
        return False
    if await door.runtime.log.holder(team) is None:
        door.progress.note(f"Nobody runs it just now; to let it go on: {command(door, 'resume', team)}", style="yellow")
    return True


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
