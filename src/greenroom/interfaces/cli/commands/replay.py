"""`greenroom replay`: what was true at any version, or the whole story again. A view: nothing is run again."""

from __future__ import annotations

from rich.text import Text

from greenroom.app.lookup import find
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.ids import TeamId
from greenroom.interfaces.cli.asked.orders import Replay
from greenroom.interfaces.cli.commands.portrait import fields, portray, rendered
from greenroom.interfaces.cli.display.progress import MARKS
from greenroom.interfaces.cli.display.rows import colour, seconds
from greenroom.interfaces.cli.display.telling import Line, Teller
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door

ONLY_A_VIEW = "A view of the log: nothing is run again and no model is asked."


async def replay(door: Door, order: Replay) -> Exit:
    """Tell the story, or draw the portrait of then."""
    found, at = await find(door.runtime, order.name), order.at
    head = (await door.runtime.log.head(found.team)).version
    if at is not None and at > head:
        why = f"Team {found.team!r} has versions 1 to {head}, not {at}."
        raise Refused(Rejected(code="no_such_version", why=why))
    door.out.begin(team=found.team, command="replay", at=at or head)
    door.progress.note(ONLY_A_VIEW, style="dim")
    if at is None and found.task is not None:
        door.progress.note(f"The log is one of the whole team: all of {found.team} is told.", style="dim")
    if at is None:
        return await _story(door, found.team)
    portrait = await portray(door, found.team, at)
    door.out.show(*rendered(portrait, f"as it was at version {at} of {head}", found.task))
    door.progress.note(f"\nBranch off from here: {command(door, 'fork', found.team, '--at', str(at))}")
    return door.out.result("ok", Exit.DONE, **fields(portrait, None, found.task))


async def _story(door: Door, team: TeamId) -> Exit:
    teller = Teller()
    async for told in door.runtime.events(team):
        line = teller.tell(told)
        door.out.stream(team, told)
        if line.said.story or door.setup.verbose:
            door.out.show(_line(teller, line))
    total = teller.total()
    door.progress.note(f"\nWhat was true at any version: {command(door, 'replay', team, '--at', 'VERSION')}")
    return door.out.result(
        "ok",
        Exit.DONE,
        team=team,
        version=teller.version,
        steps=total.steps,
        tokens=total.tokens,
        messages=teller.messages,
    )


def _line(teller: Teller, line: Line) -> Text:
    said = line.said
    text = Text(f"{line.version:>5}  {'+' + seconds(line.at - teller.began_at):>7}  ", style="dim")
    text.append(f"{said.who:<6} ", style=f"not dim {colour(teller.world, said.who)}".strip())
    text.append(f"{said.mark or ' '} ", style=f"not dim {MARKS.get(said.mark, '')}".strip())
    text.append(f"{line.type} {said.text}" if said.plain else said.text, style="" if said.plain else "not dim")
    return text
