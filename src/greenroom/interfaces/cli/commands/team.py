"""`greenroom team`: write the charter of an organisation, let it work, see how it stands, stop it."""

from __future__ import annotations

import asyncio
import getpass
from dataclasses import replace

from rich.text import Text

from greenroom.app.host import Host
from greenroom.app.organisation.charter import charters, fault_of
from greenroom.app.organisation.chartering import Wish, write_charter
from greenroom.app.organisation.finding import organisations
from greenroom.app.organisation.names import BASE
from greenroom.app.organisation.rest import at_rest
from greenroom.app.organisation.states import states
from greenroom.core.base.errors import Refused, Rejected, WorldFault
from greenroom.core.base.ids import TeamId
from greenroom.core.rules.intents import PauseTeam
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked.orders import Caps, Tape
from greenroom.interfaces.cli.asked.organising import TeamList, TeamNew, TeamStart, TeamStatus, TeamStop
from greenroom.interfaces.cli.display.organised import language_of, picture, pictured
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.reasons import STOPPED, reason, still
from greenroom.interfaces.cli.display.tables import Fitted, row
from greenroom.interfaces.cli.display.team import columns, stands_word, team_word
from greenroom.interfaces.cli.exits import Exit, of_standings
from greenroom.interfaces.cli.runs.organising import brought_up, held_up, meant, there
from greenroom.interfaces.cli.runs.running import attend, command, so_far, telling
from greenroom.interfaces.cli.runs.session import Desk, Door

LANGUAGES = ("en", "zh")


async def team_new(desk: Desk, order: TeamNew) -> Exit:
    """Write it, and say what comes next."""
    language = order.language or desk.means.provisions.loaded.settings.language
    if language not in LANGUAGES:
        why = f"{language!r} is no language that an organisation speaks."
        raise Refused(Rejected(code="bad_language", why=why, hint=f"There are: {', '.join(LANGUAGES)}."))
    people = order.people or (_you(),)
    others = tuple(desk.means.surroundings.agents().specs)
    wish = Wish(name=order.name, people=people, language=language, model=order.model, others=others)
    path = write_charter(desk.means.surroundings.root, wish)
    desk.out.begin(command="team new")
    desk.out.show(harmless(str(path)))
    desk.progress.note(team_word("made", language, name=order.name, people=", ".join(people)), style="green")
    start, talk = command(desk, "team", "start", order.name), command(desk, "talk", order.name, *_as(people))
    desk.progress.note(team_word("let_work", language, command=start))
    desk.progress.note(team_word("talk_to", language, command=talk))
    return desk.out.result("written", Exit.DONE, name=order.name, file=str(path), people=list(people))


def _you() -> str:
    """Whoever is logged in, as far as that is known."""
    try:
        name = "".join(sign for sign in getpass.getuser() if sign.isalnum() or sign in "-_").lstrip("-")
    except (OSError, KeyError):
        name = ""
    return name or "me"


def _as(people: tuple[str, ...]) -> tuple[str, ...]:
    return ("--as", people[0]) if len(people) > 1 else ()


# ----------------------------------------------------------------------------------------------------------- start


async def team_start(door: Door, order: TeamStart) -> Exit:
    """Let it work until somebody stops it."""
    one = await meant(door, order.name)
    if one.team is not None:
        await _refuse_held(door, one.team, one.name)
    door.means.cap(Caps(cost=order.cost, tokens=order.tokens, time=order.time))
    team = await brought_up(door, one, Tape(record=order.record, replay=order.replay))
    world = await door.runtime.world(team)
    await door.runtime.ask(team, *held_up(world))
    door.out.begin(team=team, command="team start", name=one.name, home=str(door.home))
    people = [name for name, it in sorted(world.agents.items()) if it.spec.kind == "human"]
    language = language_of(world)
    door.progress.note(team_word("works", language, name=one.name, team=team), style="bold")
    told = command(door, "talk", one.name, *_as(tuple(people)))
    door.progress.note(team_word("talk", language, command=told), style="dim")
    shown = pictured(door.progress, everything=door.setup.verbose)
    return await _running(replace(door, progress=shown), team, one.name)


async def _refuse_held(door: Door, team: TeamId, name: str) -> None:
    holder = await door.runtime.log.holder(team)
    if holder is not None:
        language = language_of(await door.runtime.world(team))
        known = {"talk": command(door, "talk", name), "stop": command(door, "team", "stop", name)}
        raise WorldFault(team_word("held", language, name=name, owner=holder.owner, **known))


async def _running(door: Door, team: TeamId, name: str) -> Exit:
    teller = await so_far(door, team)
    teller.language = language_of(teller.world)
    door.progress.begin(teller)
    try:
        async with telling(door, team, teller):
            world = await _until_over(door, team)
    except asyncio.CancelledError:
        door.progress.end()
        again = command(door, "team", "start", name)
        door.progress.note(team_word("again", language_of(teller.world), command=again), style="bold")
        raise
    finally:
        door.progress.end()
        await door.runtime.stop(team)
    why, code = _why(world, command(door, "team", "start", name))
    door.progress.note(why, style="bold")
    return door.out.result("stopped", code, team=team, why=why)


async def _until_over(door: Door, team: TeamId) -> World:
    """Let it work; returns how it is when it has ended, and it is not we who end it."""
    host = await door.runtime.start(team)
    attend(host, door.progress)
    over = asyncio.Event()
    for listen in (host.listen, host.listen_trouble):
        listen(lambda _: over.set() if _ended(host) else None)
    while not _ended(host):
        over.clear()
        await over.wait()
    if host.sync.stopped is not None:
        raise host.sync.stopped
    return host.world


def _ended(host: Host) -> bool:
    return host.sync.stopped is not None or host.world.team.paused is not None or BASE not in host.world.tasks


def _why(world: World, start: str) -> tuple[str, Exit]:
    """What ended it. That somebody stopped it is as it should be; that it ran into a limit is not."""
    language, paused = language_of(world), world.team.paused
    if paused is None:
        return team_word("over", language), Exit.DONE
    stands = at_rest(world).word
    if stands == "paused" or paused == STOPPED:  # also while a step is still being interrupted
        return team_word("ended", language, why=reason(paused, language)), Exit.DONE
    return still(paused, language, world.team.name, start), of_standings([stands])


# ------------------------------------------------------------------------------------------------- looking, stopping


async def team_status(door: Door, order: TeamStatus) -> Exit:
    """Show it, or its states."""
    one, team = await there(door, order.name)
    world, holder = await door.runtime.world(team), await door.runtime.log.holder(team)
    door.out.begin(team=team, command="team status", name=one.name, home=str(door.home))
    stands = at_rest(world)
    if order.kind:
        found = await states(door.runtime, team, order.kind, secrets=door.means.provisions.keys())
        for name, fields in found.items():
            door.out.show(
                Text(f"{name}", style="bold"), *(Text(f"  {key}: {_short(it)}") for key, it in fields.items())
            )
        return door.out.result("ok", Exit.DONE, states=found)
    teller, language = await so_far(door, team), language_of(world)
    teller.language = language
    where = team_word("runs_in", language, owner=holder.owner) if holder is not None else team_word("nobody", language)
    told = f"\n{stands_word(stands.word, language)} · {where}"
    door.out.show(picture(teller, moving=False), Text(told, style="dim"))
    if holder is None:
        door.progress.note(team_word("start", language, command=command(door, "team", "start", one.name)))
    agents = {name: it.working_state for name, it in sorted(world.agents.items())}
    return door.out.result(
        "ok", Exit.DONE, name=one.name, stands=stands.word, owner=holder.owner if holder else None, agents=agents
    )


def _short(value: object) -> str:
    return harmless(" ".join(str(value).split()))[:200]


async def team_list(door: Door, _: TeamList) -> Exit:
    """A row for each: what is written here, also with mistakes, and what was founded anywhere."""
    root, language = door.means.surroundings.root, door.means.provisions.loaded.settings.language
    found = [(team, world) async for team, world in organisations(door.runtime)]
    begun = {world.team.name for _, world in found if world.team.workspace == str(root)}
    broken = {name: fault for name in charters(root) if (fault := fault_of(root, name))}
    door.out.begin(command="team list", home=str(door.home))
    door.out.expect("teams")
    rows = [_unbegun(door, name, broken.get(name, "")) for name in charters(root) if name not in begun]
    for team, world in found:
        here = world.team.workspace == str(root)
        rows.append(await _listed(door, team, world, broken.get(world.team.name, "") if here else ""))
    if not rows:
        door.progress.note(team_word("none", language, command=command(door, "team", "new", "NAME")))
    elif door.out.text:
        door.out.show(Fitted(columns(language), rows))
    for fault in broken.values():
        door.progress.note(harmless(fault), style="yellow")
    return door.out.result("ok", Exit.DONE)


def _unbegun(door: Door, name: str, fault: str) -> list[Text]:
    """One that is only written."""
    language, root = door.means.provisions.loaded.settings.language, door.means.surroundings.root
    fields = {"name": name, "team": None, "stands": "broken" if fault else "new", "workspace": str(root)}
    door.out.item("team", {**fields, "fault": fault or None})
    return row(Text(harmless(name), style="bold"), "", team_word("broken" if fault else "new", language), "")


async def _listed(door: Door, team: TeamId, world: World, fault: str) -> list[Text]:
    language, holder = door.means.provisions.loaded.settings.language, await door.runtime.log.holder(team)
    people = [name for name, it in sorted(world.agents.items()) if it.spec.kind == "human"]
    stands = at_rest(world).word if holder is not None or world.team.paused is None else "stopped"
    if holder is not None:
        told = team_word("stands_in", language, stands=stands_word(stands, language), owner=holder.owner)
    else:
        told = stands_word(stands, language) if stands == "stopped" else team_word("nobody", language)
    if fault:
        told = f"{told}; {team_word('broken', language)}"
    fields = {"name": world.team.name, "team": team, "stands": stands, "owner": holder.owner if holder else None}
    door.out.item("team", {**fields, "workspace": world.team.workspace, "people": people, "fault": fault or None})
    return row(Text(world.team.name, style="bold"), team, told, ", ".join(people))


async def team_stop(door: Door, order: TeamStop) -> Exit:
    """What runs is interrupted and queued again; whoever runs it ends."""
    one, team = await there(door, order.name)
    world, holder = await door.runtime.world(team), await door.runtime.log.holder(team)
    if world.team.paused is None:
        await door.runtime.ask(team, PauseTeam(why=STOPPED, now=True))
    language = language_of(world)
    door.out.show(team_word("is_stopped", language, name=one.name))
    door.progress.note(team_word("go_on", language, command=command(door, "team", "start", one.name)))
    return door.out.result("stopped", Exit.DONE, team=team, owner=holder.owner if holder else None)
