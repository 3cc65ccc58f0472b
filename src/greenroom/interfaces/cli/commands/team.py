"""`greenroom team`: write the charter of an organisation, let it work, see how it stands, stop it."""

from __future__ import annotations

import asyncio
import getpass
from dataclasses import replace

from rich.text import Text

from greenroom.app.host import Host
from greenroom.app.organisation.charter import charters, find_charter
from greenroom.app.organisation.charter_words import said
from greenroom.app.organisation.chartering import Wish, write_charter
from greenroom.app.organisation.finding import founded, organisations, over
from greenroom.app.organisation.names import BASE, LANGUAGES
from greenroom.app.organisation.refusals import nobody, refused
from greenroom.app.organisation.rest import at_rest
from greenroom.app.organisation.states import states
from greenroom.app.standing import pause_word
from greenroom.core.base.errors import Refused, Rejected, RunsElsewhere, WorldFault
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.rules.intents import PauseTeam, RemoveAgent
from greenroom.core.state.stage import Subtask
from greenroom.core.state.team import TeamPaused
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked.orders import Caps, Tape
from greenroom.interfaces.cli.asked.organising import TeamDismiss, TeamList, TeamNew, TeamStart, TeamStatus, TeamStop
from greenroom.interfaces.cli.display.organised import language_of, picture, pictured
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.reasons import LIMIT, STOPPED, reason, still
from greenroom.interfaces.cli.display.tables import Fitted, row
from greenroom.interfaces.cli.display.team import columns, stands_word, team_word
from greenroom.interfaces.cli.display.telling import Teller
from greenroom.interfaces.cli.exits import Exit, of_standings
from greenroom.interfaces.cli.runs.beginning import new_limits
from greenroom.interfaces.cli.runs.organising import (
    Meant,
    bad_model,
    brought_up,
    held_up,
    meant,
    mistakes,
    there,
    way_on,
)
from greenroom.interfaces.cli.runs.running import attend, command, so_far, telling
from greenroom.interfaces.cli.runs.session import Door


async def team_new(door: Door, order: TeamNew) -> Exit:
    """Write it, and say what comes next."""
    spoken = door.means.provisions.loaded.settings.language
    language = order.language or spoken
    if language not in LANGUAGES:
        why = said("no_language", spoken, language=language, known=", ".join(LANGUAGES))
        raise Refused(Rejected(code="bad_language", why=why))
    people = order.people or (_you(),)
    others = tuple(door.means.surroundings.agents().specs)
    no_model = bad_model(door, order.model, language)
    wish = Wish(name=order.name, people=people, language=language, model=order.model, others=others, no_model=no_model)
    root = door.means.root
    path = write_charter(root, wish)
    door.out.begin(command="team new")
    door.out.show(harmless(str(path)))
    door.progress.note(team_word("made", language, name=order.name, people=", ".join(people)), style="green")
    before = await founded(door.runtime, root, order.name)
    if before is not None:
        known = {"name": order.name, "team": before, "command": command(door, "cancel", before)}
        door.progress.note(team_word("before", language, **known), style="yellow")
    start, talk = command(door, "team", "start", order.name), command(door, "talk", order.name, *_as(people))
    door.progress.note(team_word("let_work", language, command=start))
    door.progress.note(team_word("talk_to", language, command=talk))
    return door.out.result("written", Exit.DONE, name=order.name, file=str(path), people=list(people))


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
    since = 0
    if one.team is not None:
        await _refuse_held(door, one.team, one)
        since = (await door.runtime.log.head(one.team)).version
    caps = Caps(cost=order.cost, tokens=order.tokens, time=order.time)
    door.means.cap(caps)
    team = await brought_up(door, one, Tape(record=order.record, replay=order.replay))
    world = await door.runtime.world(team)
    limits = () if one.chartered else new_limits(door, world, caps)
    await door.runtime.ask(team, *limits, *held_up(world))
    door.out.begin(team=team, command="team start", name=one.name, home=str(door.home))
    if await _stopped_since(door, team, since):
        return _over(door, await door.runtime.world(team))
    teller = await so_far(door, team)
    teller.language = language_of(teller.world)
    try:
        host = await _owned(door, team, one)
        _welcome(door, teller.world, one)
        shown = pictured(door.progress, everything=door.setup.verbose)
        world = await _running(replace(door, progress=shown), host, teller, one)
    finally:
        await door.runtime.stop(team)
    return _over(door, world)


async def _owned(door: Door, team: TeamId, one: Meant) -> Host:
    """Begin to run it, unless somebody else has come first."""
    try:
        return await door.runtime.start(team)
    except RunsElsewhere:
        await _refuse_held(door, team, one)
        raise


def _welcome(door: Door, world: World, one: Meant) -> None:
    people = [name for name, it in sorted(world.agents.items()) if it.spec.kind == "human"]
    language = language_of(world)
    door.progress.note(team_word("works", language, name=one.name, team=world.team.team_id), style="bold")
    told = command(door, "talk", one.called, *_as(tuple(people)))
    door.progress.note(team_word("talk", language, command=told), style="dim")


async def _refuse_held(door: Door, team: TeamId, one: Meant) -> None:
    holder = await door.runtime.log.holder(team)
    if holder is not None:
        language = language_of(await door.runtime.world(team))
        known = {"talk": command(door, "talk", one.called), "stop": command(door, "team", "stop", one.called)}
        raise WorldFault(team_word("held", language, name=one.name, owner=holder.owner, **known))


async def _stopped_since(door: Door, team: TeamId, version: int) -> bool:
    """Whether a person has stopped it since this version, which is when this start was typed: then it is stopped."""
    paused = (
        told.event.why async for told in door.runtime.events(team, after=version) if isinstance(told.event, TeamPaused)
    )
    if not [why async for why in paused if LIMIT.fullmatch(why) is None]:
        return False
    await door.runtime.ask(team, PauseTeam(why=STOPPED, now=True))
    return True


async def _running(door: Door, host: Host, teller: Teller, one: Meant) -> World:
    door.progress.begin(teller)
    try:
        async with telling(door, teller.world.team.team_id, teller):
            return await _until_over(door, host)
    except asyncio.CancelledError:
        door.progress.end()
        again = command(door, "team", "start", one.called)
        door.progress.note(team_word("again", language_of(teller.world), command=again), style="bold")
        raise
    finally:
        door.progress.end()


def _over(door: Door, world: World) -> Exit:
    """Say what ended it."""
    why, code = _why(door, world)
    door.progress.note(why, style="bold")
    return door.out.result("stopped", code, team=world.team.team_id, why=why)


async def _until_over(door: Door, host: Host) -> World:
    """Let it work; returns how it is when it has ended, and it is not we who end it."""
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


def _why(door: Door, world: World) -> tuple[str, Exit]:
    """What ended it. That somebody stopped it is as it should be; that it ran into a limit is not."""
    language, paused = language_of(world), world.team.paused
    if paused is None:
        return team_word("over", language), Exit.DONE
    stands = pause_word(paused)  # also while a step is still at work
    if stands == "paused":
        return team_word("ended", language, why=reason(paused, language)), Exit.DONE
    return still(paused, language, way_on(door, world)), of_standings([stands])


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
        door.progress.note(team_word("start", language, command=command(door, "team", "start", one.called)))
    agents = {name: it.working_state for name, it in sorted(world.agents.items())}
    return door.out.result(
        "ok", Exit.DONE, name=one.name, stands=stands.word, owner=holder.owner if holder else None, agents=agents
    )


def _short(value: object) -> str:
    return harmless(" ".join(str(value).split()))[:200]


async def team_list(door: Door, _: TeamList) -> Exit:
    """A row for each: what is written here, also with mistakes, and what was founded anywhere."""
    root, language = door.means.root, door.means.provisions.loaded.settings.language
    found = [(team, world) async for team, world in organisations(door.runtime)]
    begun = {world.team.name for _, world in found if world.team.workspace == str(root)}
    broken = {name: fault for name in charters(root) if (fault := mistakes(door, name))}
    door.out.begin(command="team list", home=str(door.home))
    door.out.expect("teams")
    rows = [await _unbegun(door, name, broken.get(name, "")) for name in charters(root) if name not in begun]
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


async def _unbegun(door: Door, name: str, fault: str) -> list[Text]:
    """One that is only written, or that was and is over."""
    language, root = door.means.provisions.loaded.settings.language, door.means.root
    stands = "broken" if fault else "gone" if await over(door.runtime, root, name) else "new"
    fields = {"name": name, "team": None, "stands": stands, "workspace": str(root)}
    door.out.item("team", {**fields, "fault": fault or None})
    return row(Text(harmless(name), style="bold"), "", team_word(stands, language), "", harmless(str(root)))


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
    where = harmless(world.team.workspace)
    return row(Text(world.team.name, style="bold"), team, told, ", ".join(people), where)


async def team_stop(door: Door, order: TeamStop) -> Exit:
    """What runs is interrupted and queued again; whoever runs it ends. What stands still is stopped anew: somebody may
    be starting it, and what is in the log after that start counts."""
    one, team = await there(door, order.name)
    world, holder = await door.runtime.world(team), await door.runtime.log.holder(team)
    await door.runtime.ask(team, PauseTeam(why=STOPPED, now=True))
    language = language_of(world)
    door.out.show(team_word("is_stopped", language, name=one.name))
    door.progress.note(team_word("go_on", language, command=command(door, "team", "start", one.called)))
    return door.out.result("stopped", Exit.DONE, team=team, owner=holder.owner if holder else None)


async def team_dismiss(door: Door, order: TeamDismiss) -> Exit:
    """Let them go: nobody waits for them any more, and their name is not used again."""
    one, team = await there(door, order.name)
    world, who = await door.runtime.world(team), AgentId(order.agent)
    language = language_of(world)
    _refuse_written(door, one, who, language)
    try:
        await door.runtime.ask(team, RemoveAgent(agent_id=who, why="dismissed by a person"))
    except Refused as error:
        raise _needed(door, one, world, who, error) from None
    door.out.show(harmless(team_word("left", language, who=who, name=one.name)))
    undone = len(world.agents[who].todo) if who in world.agents else 0
    if undone:
        door.progress.note(harmless(team_word("undone", language, who=who, count=undone)), style="yellow")
    return door.out.result("left", Exit.DONE, team=team, agent=who)


def _refuse_written(door: Door, one: Meant, who: AgentId, language: str) -> None:
    """Whom the charter names comes back with each start, and cannot: a name is used once."""
    if one.chartered:
        charter = find_charter(door.means.root, one.name, language)
        if who in (*charter.managers, *(it.name for it in charter.people)):
            raise refused("in_charter", "take_out", language, name=who, path=charter.path)


def _needed(door: Door, one: Meant, world: World, who: AgentId, error: Refused) -> Refused:
    """Why they cannot go, and what to do first. Nobody is told to end the organisation itself for that."""
    language, team = language_of(world), world.team.team_id
    match error.rejected.code:
        case "unknown_agent":
            return nobody(who, world.agents, language)
        case "agent_busy":
            stop = command(door, "team", "stop", one.called)
            return refused("agent_busy", "first", language, name=who, command=stop)
        case "agent_manages" if world.tasks[BASE].manager == who:
            return refused("hears_people", "stays", language, name=who)
        case "agent_manages":
            held = [it.task_id for it in world.tasks.values() if it.manager == who]
        case "agent_allotted":
            held = [it.task_id for it in world.stages.values() if any(_is_open(part, who) for part in it.subtasks)]
        case _:
            return error
    task = min(held, key=lambda it: (it == BASE, len(it), it), default=BASE)
    if task == BASE:
        return refused(error.rejected.code, "ask_manager", language, name=who, manager=world.tasks[BASE].manager)
    return refused(error.rejected.code, "first", language, name=who, command=command(door, "cancel", f"{team}/{task}"))


def _is_open(part: Subtask, who: AgentId) -> bool:
    return part.agent == who and part.state in ("init", "running")
