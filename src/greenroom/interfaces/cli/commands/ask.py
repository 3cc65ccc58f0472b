"""`greenroom ask`: one question to one model, kept in the log like every other work."""

from __future__ import annotations

from dataclasses import replace

from greenroom.app.conversation.names import ASK
from greenroom.app.conversation.start import NOTHING_SAID, Wanted, found_alone
from greenroom.interfaces.cli.asked.orders import Ask
from greenroom.interfaces.cli.display.talk import Talk
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.attending import attended
from greenroom.interfaces.cli.runs.beginning import Begun, Wish, begun, with_context
from greenroom.interfaces.cli.runs.ending import close
from greenroom.interfaces.cli.runs.session import Door


async def ask(door: Door, order: Ask) -> Exit:
    """See that the model can be asked, then make the team and follow it to its end."""
    beginning = await begun(door, Wish(model=order.model, tools=False, caps=order.caps, tape=order.tape))
    return await answered(door, beginning, ASK, order.question, order.context)


async def answered(
    door: Door, beginning: Begun, kit: str, text: str, context: str, *notes: str, wanted: Wanted = NOTHING_SAID
) -> Exit:
    """A team whose answer ends its task: found it, follow it, and print what came of it."""
    talk, cast = Talk(door.setup, door.out), beginning.cast
    whole = with_context(text, context, beginning.language)
    team = await found_alone(door.runtime, kit, cast, whole, typed=text, limits=beginning.caps.limits, wanted=wanted)
    door.out.begin(team=team, command=kit, model=cast.models[0], agent=cast.first, home=str(door.home))
    for note in (beginning.line, *notes):
        talk.note(note, style="dim")
    ending = await attended(replace(door, progress=talk), team, new=True)
    return close(replace(door, progress=talk), team, ending, name="last", spoken=talk.spoken)
