"""A job at this door: a request becomes a change in a copy of the person's files, which they take over or not."""

from __future__ import annotations

from dataclasses import replace

from greenroom.interfaces.cli.asked.orders import Run
from greenroom.interfaces.cli.display.talk import Talk
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.attending import attended
from greenroom.interfaces.cli.runs.beginning import Wish, begun, with_context
from greenroom.interfaces.cli.runs.handing import handed_over
from greenroom.interfaces.cli.runs.jobs import founded, tier
from greenroom.interfaces.cli.runs.session import Door

UNTOUCHED = "your files stay untouched"


async def job(door: Door, order: Run) -> Exit:
    """See that all is there, found the team, follow it, and hand over what came of it."""
    beginning = await begun(door, Wish(model=order.model, job=True, caps=order.caps, tape=order.tape))
    talk, cast = Talk(door.setup, door.out), beginning.cast
    whole = with_context(order.question, order.context, beginning.language)
    team = await founded(door, beginning, whole, order.question)
    door.out.begin(team=team, command="run", model=cast.models[0], agent=cast.first, home=str(door.home))
    for note in (f"run {team} · {beginning.line} · {tier(door.means)} · {UNTOUCHED}", *beginning.notes):
        talk.note(note, style="dim")
    told = replace(door, progress=talk)
    ending = await attended(told, team, new=True)
    return await handed_over(told, team, ending, name="last", spoken=talk.spoken)
