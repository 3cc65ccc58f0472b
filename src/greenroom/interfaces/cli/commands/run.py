"""`greenroom run`: something to do for an agent, which answers when it is done. Who can change files does a job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from greenroom.app.conversation.names import RUN
from greenroom.app.conversation.start import Wanted
from greenroom.core.base.errors import Refused, Rejected
from greenroom.interfaces.cli.asked.orders import Run
from greenroom.interfaces.cli.commands.ask import answered
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.loading import load
from greenroom.interfaces.cli.runs.beginning import Begun, Wish, begun
from greenroom.interfaces.cli.runs.session import Door

NO_TOOLS = "It has no tools, so it answers from what it is told. Its file may give it some; --no-tools: that is meant."


async def run(door: Door, order: Run) -> Exit:
    """See that the agent and its model are there, then make the team and follow it to its end."""
    door.means.leave_alone(said=order.alone)
    door.means.agree(said=order.yes)
    in_copy = order.tools and not order.in_place
    wish = Wish(agent=order.agent, model=order.model, tools=order.tools, job=in_copy, caps=order.caps, tape=order.tape)
    beginning = await begun(door, wish)
    if in_copy and beginning.writers:
        job = cast("Callable[[Door, Run, Begun], Awaitable[Exit]]", load("commands.job", "job"))
        return await job(door, order, beginning)
    _refuse_nothing_to_take(order)
    wanted = Wanted(question=order.wants_answer)
    notes = list(beginning.notes)
    if order.tools and not beginning.cast.workspace:
        notes.append(NO_TOOLS)
    return await answered(door, beginning, RUN, order.question, order.context, *notes, wanted=wanted)


def _refuse_nothing_to_take(order: Run) -> None:
    """Before anything is spent: who only reads and talks leaves nothing that could be taken over."""
    if order.take is not None:
        why = f"{order.agent!r} has no tools that change files, so there will be nothing to take over."
        raise Refused(Rejected(code="nothing_to_take", why=why, hint="Leave --apply and --branch out."))
