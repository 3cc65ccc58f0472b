"""The organisation that a command means: found, founded or renewed by its charter, with what it works with here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from greenroom.app.conversation.start import Cast, model_of
from greenroom.app.kit import Kit
from greenroom.app.organisation.charter import (
    Charter,
    charters,
    find_charter,
    misfits,
    no_charter,
    path_of,
    read_charter,
)
from greenroom.app.organisation.founders import (
    Founders,
    all_staff,
    elsewhere,
    found,
    found_by_id,
    founded,
    founders_of,
    renew,
)
from greenroom.app.organisation.kit import Supplies, organisation_kit
from greenroom.app.organisation.people import more_messages
from greenroom.app.organisation.words import BASE, phrase
from greenroom.core.base.amounts import UNLIMITED
from greenroom.core.base.errors import Bug, Refused, Rejected, WorldFault
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TeamId
from greenroom.core.base.records import evolve, record
from greenroom.core.rules.intents import ResumeTask, ResumeTeam, SetLimits
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team import Team
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked.orders import Tape
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.phrases import Way, team_word
from greenroom.interfaces.cli.display.rows import dollars
from greenroom.interfaces.cli.runs.beginning import meet_servers, refuse_unpriced, see_what_is_brought
from greenroom.interfaces.cli.runs.means import Means
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door

KEYS: Final = {"money": "cost", "tokens": "tokens", "millis": "time"}
"""What a charter calls its limits, by what a budget calls them."""


@record
class Meant:
    """An organisation: whether its charter lies in this workspace, and its team, if it was founded.

    The charter is not read yet: one with a mistake can still be looked at and stopped.
    """

    name: str
    chartered: bool
    team: TeamId | None

    @property
    def called(self) -> str:
        """What a command that is typed here calls it: elsewhere than at its charter only its id is known."""
        return self.name if self.chartered or self.team is None else self.team


async def meant(door: Door, name: str) -> Meant:
    """Which organisation is meant: the only one, or by name or id; `Refused` says which there are."""
    root, language = door.means.root, spoken(door)
    known = charters(root)
    if not name and not known:
        raise Refused(Rejected(code="no_team", why=phrase("charter", "none_here", language)))
    if not name and len(known) > 1:
        why = phrase("charter", "several_here", language, count=len(known), known=", ".join(known))
        raise Refused(Rejected(code="which_team", why=why))
    name = name or known[0]
    if name in known:
        return Meant(name=name, chartered=True, team=await founded(door.runtime, root, name))
    team = await found_by_id(door.runtime, name)
    if team is None:
        raise no_charter(root, name, language)
    its = (await door.runtime.world(team)).team
    return Meant(name=its.name, chartered=Path(its.workspace) == root and its.name in known, team=team)


def spoken(door: Door) -> str:
    """The language of the person, where no organisation is known."""
    return door.means.provisions.loaded.settings.language


async def there(door: Door, name: str) -> tuple[Meant, TeamId]:
    """One that was founded already."""
    one = await meant(door, name)
    if one.team is None:
        why = phrase("charter", "not_begun", spoken(door), name=one.name)
        raise Refused(Rejected(code="not_founded", why=why))
    return one, one.team


async def brought_up(door: Door, one: Meant, tape: Tape) -> TeamId:
    """The organisation, founded if it was not, as its charter says, with models that can be asked."""
    door.means.tape(tape)
    await door.means.provisions.look_around()
    if one.team is not None and not one.chartered:
        world = await door.runtime.world(one.team)
        _refuse_models(door, world.agents[world.tasks[BASE].manager].spec)
        return one.team
    charter = find_charter(door.means.root, one.name, spoken(door))
    see_what_is_brought(door, charter.path.parent.parent.parent)
    founders = await _founders(door, charter)
    _refuse_models(door, *founders.managers)
    if one.team is None:
        await _name_others(door, one.name, founders.language)
        return await found(door.runtime, founders)
    for trouble in await renew(door.runtime, one.team, founders, str(charter.path)):
        door.progress.note(harmless(trouble), style="yellow")
    return one.team


async def _name_others(door: Door, name: str, language: str) -> None:
    """A folder that was moved has left its organisation behind: what is founded in it now is another one."""
    for team, place in await elsewhere(door.runtime, door.means.root, name):
        what = "another" if path_of(place, name).exists() else "moved"
        told = {"name": name, "team": team, "place": place, "show": command(door, "show", team)}
        door.progress.note(harmless(team_word(what, language, **told)), style="yellow")


def _refuse_models(door: Door, *specs: AgentSpec) -> None:
    """See that their models can be asked, and that what they cost is known where it counts."""
    for spec in specs:
        refuse_unpriced(door.means.named(model_of(spec)), door.means.provisions.loaded.settings.limits)


async def _founders(door: Door, charter: Charter) -> Founders:
    provisions, agents = door.means.provisions, door.means.surroundings.agents()
    charter = evolve(charter, language=charter.language or spoken(door))
    for trouble in agents.troubles:
        door.progress.note(trouble.text, style="yellow")
    staff = all_staff(charter.language, agents.specs)
    await meet_servers(door, Cast(members=tuple((AgentId(name), spec) for name, spec in staff.items())))
    tools, caps = door.means.toolbox(door.means.root), provisions.loaded.settings.limits
    founders = founders_of(charter, staff, tools, settled=provisions.settled, caps=caps)
    for fault in misfits(charter, staff, tools, charter.language):
        door.progress.note(harmless(fault), style="yellow")
    return founders


def mistakes(door: Door, name: str) -> str:
    """What is wrong with a charter of this workspace, a line for each mistake; nothing when all of it can be used."""
    root, agents = door.means.root, door.means.surroundings.agents()
    try:
        charter = read_charter(root, path_of(root, name), spoken(door))
    except WorldFault as fault:
        return str(fault)
    language = charter.language or spoken(door)
    found = misfits(charter, all_staff(language, agents.specs), door.means.toolbox(root), language)
    why = (trouble.text for trouble in agents.troubles if trouble.name in (*charter.managers, *charter.blueprints))
    model = bad_model(door, charter.model, language)
    return "\n".join((*found, *why, *((f"{charter.path}: {model}",) if model else ())))


def bad_model(door: Door, name: str, language: str) -> str:
    """Why a charter cannot name this model; empty when it can."""
    why = door.means.provisions.supply.misnamed(name)
    return phrase("charter", "no_model", language, name=name, why=why) if why else ""


def held_up(world: World) -> list[ResumeTeam | ResumeTask | SetLimits]:
    """What lets go on all that stands still in it."""
    team = [ResumeTeam()] if world.team.paused is not None else []
    tasks = [ResumeTask(task_id=task.task_id) for task in world.tasks.values() if task.paused is not None]
    return [*more_messages(world), *team, *tasks] if team or tasks else []


def way_on(door: Door, world: World) -> Way:
    """What lets it go on from here: from elsewhere it is known by its id, and a charter with mistakes holds nothing."""
    root, name, budget = Path(world.team.workspace), world.team.name, world.budgets[TEAM_BUDGET]
    path, limits, spent, left = path_of(root, name), budget.limits, budget.spent, dict[str, str]()
    try:
        held = read_charter(root, path).caps.limits
    except WorldFault:
        held = UNLIMITED
    if limits.money is not None:
        left["money"] = dollars(max(0, limits.money - spent.money))
    if limits.tokens is not None:
        left["tokens"] = f"{max(0, limits.tokens - spent.tokens):,}"
    here = root == door.means.root and path.exists()
    return Way(
        name=name,
        start=command(door, "team", "start", name if here else world.team.team_id),
        path=str(path),
        keys={what: key for what, key in KEYS.items() if getattr(held, what) == getattr(limits, what) is not None},
        left=left,
    )


# ----------------------------------------------------------------------------------------------- what it works with


def kit_of(means: Means) -> Callable[[Team], Awaitable[Kit]]:
    """The kit of organisations. Loaded by name: skills and tools take their time."""

    async def world(team: TeamId) -> World:
        if means.runtime is None:
            raise Bug("An organisation runs without a runtime.")
        return await means.runtime.world(team)

    def wanted(team: Team) -> tuple[str, ...]:
        """The blueprints that its charter names; where that is gone, all there are."""
        root = Path(team.workspace)
        return find_charter(root, team.name).blueprints if team.name in charters(root) else ()

    return organisation_kit(
        Supplies(
            models=means,
            notes=means.notes,
            hands=means.hands,
            staff=lambda language: all_staff(language, means.surroundings.agents().specs),
            wanted=wanted,
            world=world,
            settled=means.provisions.settled,
            patience=means.patience,
        )
    )
