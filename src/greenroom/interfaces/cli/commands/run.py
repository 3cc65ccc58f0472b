"""`greenroom run`: something to do for an agent, which answers when it is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from greenroom.app.talks.names import RUN
from greenroom.interfaces.cli.asked.orders import Run
from greenroom.interfaces.cli.commands.ask import answered
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.loading import load
from greenroom.interfaces.cli.runs.beginning import Wish, begun
from greenroom.interfaces.cli.runs.session import Door

NO_TOOLS = "It has no tools, so it answers from what it is told. Its file may give it some; --no-tools: that is meant."


async def run(door: Door, order: Run) -> Exit:
    """See that the agent and its model are there, then make the team and follow it to its end."""
    door.means.leave_alone(said=order.alone)
    door.means.agree(said=order.yes)
    if order.tools and not order.agent and not order.in_place:
        return await cast("Callable[[Door, Run], Awaitable[Exit]]", load("commands.job", "job"))(door, order)
    wish = Wish(agent=order.agent, model=order.model, tools=order.tools, caps=order.caps, tape=order.tape)
    beginning = await begun(door, wish)
    notes = list(beginning.notes)
    if order.tools and not beginning.cast.workspace:
        notes.append(NO_TOOLS)
    return await answered(door, beginning, RUN, order.question, order.context, *notes)
