"""Which organisation is meant at this door, and bringing it up: its charter read, its models seen, its team founded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from greenroom.app.hands.toolbox import Toolbox
from greenroom.app.organisation.allowance import more_messages
from greenroom.app.organisation.charter import Charter, charters, find_charter, no_charter, path_of, read_charter
from greenroom.app.organisation.charter_words import said
from greenroom.app.organisation.finding import elsewhere, found_by_id, founded
from greenroom.app.organisation.founding import Founders, found, founders_of
from greenroom.app.organisation.misfits import misfits
from greenroom.app.organisation.names import BASE
from greenroom.app.organisation.renewing import renew
from greenroom.app.organisation.staffing import all_staff
from greenroom.app.talks.founding import Cast, model_of
from greenroom.core.base.amounts import UNLIMITED
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TeamId
from greenroom.core.base.records import evolve, record
from greenroom.core.rules.intents import ResumeTask, ResumeTeam, SetLimits
from greenroom.core.state.budget import Budget
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked.orders import Tape
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.reasons import Way
from greenroom.interfaces.cli.display.rows import dollars
from greenroom.interfaces.cli.display.team import team_word
from greenroom.interfaces.cli.runs.beginning import meet_servers, refuse_unpriced, see_what_is_brought
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door

KEYS: Final = {"money": "cost", "tokens": "tokens", "millis": "time"}
"""What a charter calls its limits, by what a budget calls them."""


@record
class Meant:
    """An organisation: whether its charter lies in this workspace, and its team, if it was founded.

    The charter is not read yet: one with a mistake keeps nobody from looking at what it became, or from stopping that.
    """

    name: str
    chartered: bool
    team: TeamId | None

    @property
    def called(self) -> str:
        """What a command that is typed here calls it: elsewhere than at its charter only its id is known."""
        return self.name if self.chartered or self.team is None else self.team


async def meant(door: Door, name: str) -> Meant:
    """Which one is meant; `Refused` says which there are."""
    root = door.means.root
    known = charters(root)
    name = name or _only(door, known)
    if name in known:
        return Meant(name=name, chartered=True, team=await founded(door.runtime, root, name))
    team = await found_by_id(door.runtime, name)
    if team is None:
        raise no_charter(root, name, _spoken(door))
    world = await door.runtime.world(team)
    return Meant(name=world.team.name, chartered=root_of(world) == root and world.team.name in known, team=team)


def _only(door: Door, known: Sequence[str]) -> str:
    if len(known) == 1:
        return known[0]
    if known:
        why = said("several_here", _spoken(door), count=len(known), known=", ".join(known))
        raise Refused(Rejected(code="which_team", why=why))
    raise Refused(Rejected(code="no_team", why=said("none_here", _spoken(door))))


def _spoken(door: Door) -> str:
    """The language of the person, where no organisation is known."""
    return door.means.provisions.loaded.settings.language


async def there(door: Door, name: str) -> tuple[Meant, TeamId]:
    """One that was founded already."""
    one = await meant(door, name)
    if one.team is None:
        raise Refused(Rejected(code="not_founded", why=said("not_begun", _spoken(door), name=one.name)))
    return one, one.team


async def brought_up(door: Door, one: Meant, tape: Tape) -> TeamId:
    """The organisation, founded if it was not, as its charter says, with models that can be asked."""
    door.means.tape(tape)
    await door.means.provisions.look_around()
    if one.team is not None and not one.chartered:
        _ask_all(door, (await door.runtime.world(one.team)).agents[AgentId(await _manager(door, one.team))].spec)
        return one.team
    charter = find_charter(door.means.root, one.name, _spoken(door))
    see_what_is_brought(door, charter.path.parent.parent.parent)
    founders = await _founders(door, charter)
    _ask_all(door, *founders.managers)
    if one.team is None:
        await _name_others(door, one.name, founders.language)
        return await found(door.runtime, founders)
    for trouble in await renew(door.runtime, one.team, founders, str(charter.path)):
        door.progress.note(harmless(trouble), style="yellow")
    return one.team


async def _name_others(door: Door, name: str, language: str) -> None:
    """A folder that was moved has left its organisation behind: what is founded in it now is another one."""
    for team, place in await elsewhere(door.runtime, door.means.root, name):
        gone = not path_of(place, name).exists()
        told = {"name": name, "team": team, "place": place, "show": command(door, "show", team)}
        door.progress.note(harmless(team_word("moved" if gone else "another", language, **told)), style="yellow")


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
    tools: Toolbox = door.means.toolbox(door.means.root)
    founders = founders_of(spoken, staff, tools, settled=provisions.settled, caps=settings.limits)
    for one in misfits(spoken, staff, tools, spoken.language):
        door.progress.note(harmless(one), style="yellow")
    return founders


def mistakes(door: Door, name: str) -> str:
    """What is wrong with a charter of this workspace, a line for each mistake; nothing when all of it can be used."""
    root, agents = door.means.root, door.means.surroundings.agents()
    try:
        charter = read_charter(root, path_of(root, name), _spoken(door))
    except WorldFault as fault:
        return str(fault)
    language = charter.language or _spoken(door)
    found = misfits(charter, all_staff(language, agents.specs), door.means.toolbox(root), language)
    why = (one.text for one in agents.troubles if one.name in (*charter.managers, *charter.blueprints))
    model = bad_model(door, charter.model, language)
    return "\n".join((*found, *why, *((f"{charter.path}: {model}",) if model else ())))


def bad_model(door: Door, name: str, language: str) -> str:
    """Why a charter cannot name this model; empty when it can."""
    why = door.means.provisions.supply.misnamed(name)
    return said("no_model", language, name=name, why=why) if why else ""


def held_up(world: World) -> list[ResumeTeam | ResumeTask | SetLimits]:
    """What lets go on whatever stands still in it."""
    team = [ResumeTeam()] if world.team.paused is not None else []
    tasks = [ResumeTask(task_id=one.task_id) for one in world.tasks.values() if one.paused is not None]
    return [*more_messages(world), *team, *tasks] if team or tasks else []


def root_of(world: World) -> Path:
    """The workspace in which it works."""
    return Path(world.team.workspace)


def way_on(door: Door, world: World) -> Way:
    """What lets it go on from here: from elsewhere it is known by its id, and a charter with mistakes holds nothing."""
    root, name, budget = root_of(world), world.team.name, world.budgets[TEAM_BUDGET]
    limits = budget.limits
    here = root == door.means.root and path_of(root, name).exists()
    try:
        held = read_charter(root, path_of(root, name)).caps.limits
    except WorldFault:
        held = UNLIMITED
    return Way(
        name=name,
        start=command(door, "team", "start", name if here else world.team.team_id),
        path=str(path_of(root, name)),
        keys={one: key for one, key in KEYS.items() if getattr(held, one) == getattr(limits, one) is not None},
        left=_left(budget),
    )


def _left(budget: Budget) -> dict[str, str]:
    """What has not been spent, where that is limited and the next step may want more of it."""
    limits, spent, found = budget.limits, budget.spent, dict[str, str]()
    if limits.money is not None:
        found["money"] = dollars(max(0, limits.money - spent.money))
    if limits.tokens is not None:
        found["tokens"] = f"{max(0, limits.tokens - spent.tokens):,}"
    return found
