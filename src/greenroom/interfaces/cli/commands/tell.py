"""`greenroom tell`: say something to whoever manages a task, wherever the team runs."""

from __future__ import annotations

from greenroom.app.conversation.send import Delivery
from greenroom.app.conversation.send import tell as deliver
from greenroom.app.conversation.typed import message
from greenroom.app.lookup import find
from greenroom.app.organisation.words import KIT as ORGANISATION
from greenroom.core.base.errors import Refused, Rejected
from greenroom.interfaces.cli.asked.orders import Tell
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door
from greenroom.testing.demo import ASKING_KIT, KIT


async def tell(door: Door, order: Tell) -> Exit:
    """Deliver it, and say who will read it and when."""
    found = await find(door.runtime, order.name)
    team = (await door.runtime.world(found.team)).team
    if team.kit == ORGANISATION:
        why = f"{found.team} is an organisation, and you are one of its people."
        raise Refused(
            Rejected(code="organisation", why=why, hint=f'Talk to it: `greenroom talk {team.name} --say "…"`.')
        )
    if team.kit in (KIT, ASKING_KIT):
        why = f"The agents of {found.team} follow a script, and read nothing else."
        raise Refused(Rejected(code="scripted", why=why, hint="Talk with an agent: `greenroom chat`."))
    told = await deliver(door.runtime, found, message(order.text))
    door.out.show(f"{told.reader} in {found.team}/{told.task} will read it {_when(told)}.")
    if told.owner is None or told.paused:
        door.progress.note(f"Go on with: {command(door, 'resume', found.team)}")
    return door.out.result("told", Exit.DONE, team=found.team, task=told.task, agent=told.reader, owner=told.owner)


def _when(told: Delivery) -> str:
    if told.owner is None:
        return "when somebody goes on with it: nobody runs the team"
    return f"when it goes on: it is paused ({told.paused})" if told.paused else "in its next turn"
