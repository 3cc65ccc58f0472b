"""`greenroom demo --team`: three scripted agents talk and work, for whoever wants to look around in a team."""

from __future__ import annotations

from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import evolve
from greenroom.interfaces.cli.asked.orders import DemoTeam
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.ending import close
from greenroom.interfaces.cli.runs.running import Ending, follow
from greenroom.interfaces.cli.runs.session import Door
from greenroom.testing.demo import AGENTS, ASKING_KIT, KIT, PERSON, TASK

MISSING_CUE = "The script has no reply"
FIRST_LINE = "The agents' replies are scripted. Everything else is real: the log, the files, what they do."


async def demo_team(door: Door, order: DemoTeam) -> Exit:
    """Make a team and follow it to its end."""
    door.means.tape(order.tape)
    door.progress.note(FIRST_LINE, style="bold")
    team = await _make(door, ASKING_KIT if order.ask else KIT)
    door.out.begin(team=team, command="demo", scripted=True, home=str(door.home))
    return close(door, team, _covered(await follow(door, team, new=True)), name="last")


def _covered(ending: Ending) -> Ending:
    """A turn that the script does not cover is a failure, whatever the others made of it."""
    missed = [one for one in ending.teller.failures if MISSING_CUE in one]
    return evolve(ending, fault=missed[0]) if missed else ending


async def _make(door: Door, kit: str) -> TeamId:
    agents = (*AGENTS, PERSON) if kit == ASKING_KIT else AGENTS
    return await door.runtime.create("demo", agents, kit=kit, begin=(TASK,))
