"""Which organisation is meant at this door, and bringing it up: its charter read, its models seen, its team founded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from greenroom.app.hands.toolbox import Toolbox
from greenroom.app.organisation.charter import Charter, charters, find_charter
from greenroom.app.organisation.finding import found_by_id, founded
from greenroom.app.organisation.founding import Founders, found, founders_of
from greenroom.app.organisation.names import BASE
from greenroom.app.organisation.renewing import renew
from greenroom.app.organisation.staffing import all_staff
from greenroom.app.talks.founding import Cast, model_of
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import evolve, record
from greenroom.core.rules.intents import ResumeTask, ResumeTeam
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked.orders import Tape
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.runs.beginning import meet_servers, refuse_unpriced, see_what_is_brought
from greenroom.interfaces.cli.runs.session import Door


@record
class Meant:
    """An organisation: whether its charter lies in this workspace, and its team, if it was founded.

    The charter is not read yet: one with a mistake keeps nobody from looking at what it became, or from stopping that.
    """

    name: str
    chartered: bool
    team: TeamId | None


async def meant(door: Door, name: str) -> Meant:
    """Which one is meant; `Refused` says which there are."""
    root = door.means.surroundings.root
    known = charters(root)
    name = name or _only(known)
    if name in known:
        return Meant(name=name, chartered=True, team=await founded(door.runtime, root, name))
    team = await found_by_id(door.runtime, name)
    if team is None:
        find_charter(root, name)  # it is not there, and says which are
    return Meant(name=(await door.runtime.world(team)).team.name if team else name, chartered=False, team=team)


def _only(known: Sequence[str]) -> str:
    if len(known) == 1:
        return known[0]
    if known:
        why = f"There are {len(known)} organisations here."
        raise Refused(Rejected(code="which_team", why=why, hint=f"Say which: {', '.join(known)}."))
    why = "There is no organisation here."
    raise Refused(Rejected(code="no_team", why=why, hint="`greenroom team new NAME` makes one."))


async def there(door: Door, name: str) -> tuple[Meant, TeamId]:
    """One that was founded already."""
    one = await meant(door, name)
    if one.team is None:
        why = f"The organisation {one.name!r} has not begun yet."
        raise Refused(Rejected(code="not_founded", why=why, hint=f"Begin it: `greenroom team start {one.name}`."))
    return one, one.team


async def brought_up(door: Door, one: Meant, tape: Tape) -> TeamId:
    """The organisation, founded if it was not, as its charter says, with models that can be asked."""
    door.means.tape(tape)
    await door.means.provisions.look_around()
    if not one.chartered:
        if one.team is None:
            raise Refused(Rejected(code="no_team", why=f"There is no organisation {one.name!r}."))
        _ask_all(door, (await door.runtime.world(one.team)).agents[AgentId(await _manager(door, one.team))].spec)
        return one.team
    charter = find_charter(door.means.surroundings.root, one.name)
    see_what_is_brought(door, charter.path.parent.parent.parent)
    founders = await _founders(door, charter)
    _ask_all(door, *founders.managers)
    if one.team is None:
        return await found(door.runtime, founders)
    for trouble in await renew(door.runtime, one.team, founders, str(charter.path)):
        door.progress.note(harmless(trouble), style="yellow")
    return one.team


async def _manager(door: Door, team: TeamId) -> str:
    return (await door.runtime.world(team)).tasks[BASE].manager


def _ask_all(door: Door, *specs: AgentSpec) -> None:
    """See that their models can be asked, and that what they cost is known where it counts."""
    for spec in specs:
        refuse_unpriced(door.means.named(model_of(spec)), door.means.provisions.loaded.settings.limits)


async def _founders(door: Door, charter: Charter) -> Founders:
    provisions = door.means.provisions
    settings, agents = provisions.loaded.settings, door.means.surroundings.agents()
    spoken = evolve(charter, language=charter.language or settings.language)
    for trouble in agents.troubles:
        door.progress.note(trouble.text, style="yellow")
    staff = all_staff(spoken.language, agents.specs)
    await meet_servers(door, Cast(members=tuple((AgentId(name), spec) for name, spec in staff.items())))
    tools: Toolbox = door.means.toolbox(door.means.surroundings.root)
    return founders_of(spoken, staff, tools, settled=provisions.settled, caps=settings.limits)


def held_up(world: World) -> list[ResumeTeam | ResumeTask]:
    """What lets go on whatever stands still in it."""
    wanted: list[ResumeTeam | ResumeTask] = [ResumeTeam()] if world.team.paused is not None else []
    return wanted + [ResumeTask(task_id=one.task_id) for one in world.tasks.values() if one.paused is not None]


def root_of(world: World) -> Path:
    """The workspace in which it works."""
    return Path(world.team.workspace)
